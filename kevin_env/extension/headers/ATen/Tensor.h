#pragma once
#include "../short/tensor.h"
