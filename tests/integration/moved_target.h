/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What test_moved.c knows of the program that it executes.
 */
#ifndef TESTS_INTEGRATION_MOVED_TARGET_H
#define TESTS_INTEGRATION_MOVED_TARGET_H

#define MOVED_SECRET  0x5ec2e75ec2e75ec2u
#define MOVED_CHANGED 42

#endif
