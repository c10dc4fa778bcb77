#pragma once
#include "../../short/scalar.h"
