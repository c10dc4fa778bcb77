#pragma once
#include "../short/tensor.h"  // of its own it has nothing that is served
