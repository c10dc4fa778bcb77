#pragma once
#include_next <torch/cuda.h>
