#pragma once
#include "../../short/cuda_guard.h"
