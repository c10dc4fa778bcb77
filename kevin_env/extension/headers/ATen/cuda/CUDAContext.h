#pragma once
#include "../../short/cuda_context.h"
