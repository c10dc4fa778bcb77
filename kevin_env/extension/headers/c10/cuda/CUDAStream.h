#pragma once
#include "../../short/cuda.h"
