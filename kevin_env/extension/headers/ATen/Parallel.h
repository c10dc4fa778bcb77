#pragma once
#include "../short/parallel.h"
