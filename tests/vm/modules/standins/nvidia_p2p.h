/* SPDX-License-Identifier: GPL-2.0 */
/* What the stand-in for nvidia exports: the real names, so that the dependencies are the real ones. */
#ifndef PEERMEMD_TESTS_NVIDIA_P2P_H
#define PEERMEMD_TESTS_NVIDIA_P2P_H

#include <linux/types.h>

#define NVIDIA_VERSION "570.124.06"

int nvidia_p2p_get_pages_persistent(u64 address, u64 length);
int nvidia_p2p_put_pages_persistent(u64 address);
int nvidia_p2p_get_pages(u64 address, u64 length);
int nvidia_p2p_put_pages(u64 address);
int nvUvmInterfaceRegisterGpu(void);

#endif
