#pragma once
#include "../short/factories.h"
