#pragma once
#include "../short/extension.h"
