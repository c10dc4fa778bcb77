#pragma once
#include_next <ATen/ceil_div.h>
