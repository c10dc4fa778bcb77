#pragma once
#include "../short/pybind.h"
