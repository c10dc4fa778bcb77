#pragma once
#include "../short/accumulate.h"
