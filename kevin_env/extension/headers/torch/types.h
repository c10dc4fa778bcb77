#pragma once
#include "../short/torch.h"
