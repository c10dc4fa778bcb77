#pragma once
#include "../../short/types.h"
