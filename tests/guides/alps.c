/* SPDX-License-Identifier: BSD-3-Clause */
/* What the guide of the ALPS libraries compiles. */
#include <alps/alps.h>
#include <alps/libalpslli.h>
#include <alps/libalpsutil.h>

int main(void)
{
    alps_app_lli_lock();
    return alps_app_lli_unlock();
}
