#pragma once
#include "../../short/check.h"
