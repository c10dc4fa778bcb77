#pragma once
#include "../short/dispatch.h"
#include "../short/factories.h"
