#pragma once
#include "../../short/accessor.h"
