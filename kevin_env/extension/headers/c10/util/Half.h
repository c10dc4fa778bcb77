#pragma once
#include "../../short/dispatch.h"
