#pragma once
#include "../../short/cuda.h"  // of its own it has nothing that is served
