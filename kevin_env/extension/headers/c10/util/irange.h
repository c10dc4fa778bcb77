#pragma once
#include_next <c10/util/irange.h>
