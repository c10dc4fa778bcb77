#pragma once
#include_next <ATen/cuda/detail/KernelUtils.h>
