#pragma once
#include_next <c10/macros/Macros.h>
