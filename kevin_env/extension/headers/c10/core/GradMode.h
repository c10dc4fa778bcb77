#pragma once
#include "../../short/grad_mode.h"
