/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network watcher's log.
 *
 * Lines are plain values: formatting and parsing are each other's inverse, and what cannot be written is not accepted.
 * A day is turned into a date and back by counting from 1 March, so that the leap day comes last (all years from 2000
 * to 2099 that divide by four are leap years).
 * Source: spec/machines.md 3.4 (TITAN).
 */
#include "emunic/fabric/watcher_log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "emunic/fabric/gemini.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/topology.h"

enum {
    DAY_S = 86400,
    DAYS = 36525 /* 2000 to 2099 */,
    FOUR_YEARS = 1461,
    DAY_ZERO = 1401 /* of day_of_date(): 1 January 2000, counted from March 1996 */
};

static const char error_mark[] = "***ERROR*** ";
static const char reinit_failed[] = "Gemini LCB lane(s) reinit failed";

/* ---- time ---- */

struct date {
    uint32_t year;  /* 0 .. 99 */
    uint32_t month; /* 1 .. 12 */
    uint32_t day;   /* 1 .. 31 */
};

/* Days from 1 March of the year before to the first of a month, March being month 0. */
static uint32_t days_before_month(uint32_t month)
{
    return (153 * month + 2) / 5;
}

/* Days since 1 January 2000. */
static uint32_t day_of_date(const struct date *d)
{
    uint32_t year = d->year + 4 - (d->month <= 2); /* begins in March; from 1996 on */
    uint32_t month = (d->month + 9) % 12;

    return year * FOUR_YEARS / 4 + days_before_month(month) + d->day - 1 - DAY_ZERO;
}

static struct date date_of_day(uint32_t day)
{
    struct date d = { 0, 1, 1 };

    d.year = day / FOUR_YEARS * 4;
    while (d.year < 99 && day_of_date(&(struct date){ d.year + 1, 1, 1 }) <= day)
        d.year++;
    while (d.month < 12 && day_of_date(&(struct date){ d.year, d.month + 1, 1 }) <= day)
        d.month++;
    d.day = day - day_of_date(&(struct date){ d.year, d.month, 1 }) + 1;
    return d;
}

/* ---- lines ---- */

static bool is_name(const char *text)
{
    return text[0] != '\0' && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

/* Printable, and no blanks at the ends. */
static bool is_error_text(const char *text)
{
    size_t len = strlen(text);

    for (const char *c = text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~')
            return false;
    }
    return len > 0 && text[0] != ' ' && text[len - 1] != ' ';
}

int emu_watcher_format(const struct emu_watcher_line *line, char *buf, size_t len)
{
    const struct date d = date_of_day((uint32_t)(line->time_s / DAY_S));
    uint32_t s = (uint32_t)(line->time_s % DAY_S);
    char event[32];
    char head[32];
    int r;

    if (line->time_s >= (uint64_t)DAYS * DAY_S || !is_name(line->link) || line->lane_mask > EMU_WATCHER_LANES_ALL)
        return -EINVAL;
    r = emu_text(head, sizeof(head), "%02u%02u%02u %02u:%02u:%02u", d.year, d.month, d.day, s / 3600, s / 60 % 60,
                 s % 60);
    if (r < 0)
        return r;
    switch (line->event) {
    case EMU_WATCHER_ERROR:
        return is_error_text(line->text) ? emu_text(buf, len, "%s %s %s%s", head, line->link, error_mark, line->text) :
                                           -EINVAL;
    case EMU_WATCHER_MODE_EXCHANGES:
        r = emu_text(event, sizeof(event), "Mode Exchanges");
        break;
    case EMU_WATCHER_RX_LANEMASK:
    case EMU_WATCHER_TX_LANEMASK:
        r = emu_text(event, sizeof(event), "%s lanemask=%u", line->event == EMU_WATCHER_RX_LANEMASK ? "RX" : "TX",
                     line->lane_mask);
        break;
    default:
        return -EINVAL;
    }
    if (r < 0)
        return r;
    return is_name(line->peer) ?
               emu_text(buf, len, "%s %s %s %u %s", head, line->link, line->peer, line->count, event) :
               -EINVAL;
}

/* Exactly `digits` digits. */
static bool take_digits(const char **text, uint32_t digits, uint32_t *value_out)
{
    uint32_t value = 0;

    for (uint32_t i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        value = value * 10 + (uint32_t)(**text - '0');
    }
    *value_out = value;
    return true;
}

static bool take_letter(const char **text, char letter)
{
    if (**text != letter)
        return false;
    (*text)++;
    return true;
}

static bool take_time(const char **text, uint64_t *time_out)
{
    struct date d, back;
    uint32_t hour, minute, second;

    if (!take_digits(text, 2, &d.year) || !take_digits(text, 2, &d.month) || !take_digits(text, 2, &d.day) ||
        !take_letter(text, ' ') || !take_digits(text, 2, &hour) || !take_letter(text, ':') ||
        !take_digits(text, 2, &minute) || !take_letter(text, ':') || !take_digits(text, 2, &second) ||
        !take_letter(text, ' '))
        return false;
    if (d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31 || hour > 23 || minute > 59 || second > 59)
        return false;
    back = date_of_day(day_of_date(&d)); /* 30 February comes back as a day of March */
    if (back.day != d.day || back.month != d.month || back.year != d.year)
        return false;
    *time_out = (uint64_t)day_of_date(&d) * DAY_S + hour * 3600 + minute * 60 + second;
    return true;
}

/* A name and the blank behind it. */
static bool take_name(const char **text, char name_out[EMU_CNAME_MAX])
{
    size_t len = strcspn(*text, " ");

    if (len == 0 || len >= EMU_CNAME_MAX || (*text)[len] != ' ')
        return false;
    memcpy(name_out, *text, len);
    name_out[len] = '\0';
    *text += len + 1;
    return is_name(name_out);
}

/* A number without leading zeros, and the blank behind it. */
static bool take_count(const char **text, uint32_t *value_out)
{
    const char *start = *text;
    uint64_t value = 0;

    while (**text >= '0' && **text <= '9' && *text - start < 10)
        value = value * 10 + (uint64_t)(*(*text)++ - '0');
    if (*text == start || (*start == '0' && *text - start > 1) || value > UINT32_MAX)
        return false;
    *value_out = (uint32_t)value;
    return take_letter(text, ' ');
}

static bool take_event(const char *text, struct emu_watcher_line *line)
{
    if (strcmp(text, "Mode Exchanges") == 0) {
        line->event = EMU_WATCHER_MODE_EXCHANGES;
        return true;
    }
    if ((text[0] != 'R' && text[0] != 'T') || strncmp(text + 1, "X lanemask=", 11) != 0)
        return false;
    line->event = text[0] == 'R' ? EMU_WATCHER_RX_LANEMASK : EMU_WATCHER_TX_LANEMASK;
    text += 12;
    return take_digits(&text, 1, &line->lane_mask) && line->lane_mask <= EMU_WATCHER_LANES_ALL && *text == '\0';
}

static bool parse_line(const char *text, struct emu_watcher_line *line)
{
    if (!take_time(&text, &line->time_s) || !take_name(&text, line->link))
        return false;
    if (strncmp(text, error_mark, sizeof(error_mark) - 1) == 0) {
        line->event = EMU_WATCHER_ERROR;
        return emu_text(line->text, sizeof(line->text), "%s", text + sizeof(error_mark) - 1) == 0 &&
               is_error_text(line->text);
    }
    return take_name(&text, line->peer) && take_count(&text, &line->count) && take_event(text, line);
}

int emu_watcher_parse(const char *text, struct emu_watcher_line *line_out)
{
    struct emu_watcher_line line = { 0 };
    char copy[EMU_WATCHER_LINE_MAX];
    size_t len = strnlen(text, sizeof(copy));

    if (len == sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, len + 1);
    if (len > 0 && copy[len - 1] == '\n')
        copy[len - 1] = '\0';
    if (!parse_line(copy, &line))
        return -EINVAL;
    *line_out = line;
    return 0;
}

/* ---- what a link says ---- */

int emu_watcher_lanes_lost(const struct emu_machine *m, uint32_t link, uint32_t lane_mask, uint64_t time_s,
                           struct emu_watcher_line lines_out[4])
{
    struct emu_watcher_line receiver = { .time_s = time_s, .count = 1 };
    struct emu_watcher_line sender;
    uint32_t reverse;
    int r;

    if (lane_mask == 0 || lane_mask > EMU_WATCHER_LANES_ALL)
        return -EINVAL;
    r = emu_gemini_tile_name(m, link, receiver.peer, sizeof(receiver.peer));
    if (r == 0)
        r = emu_link_reverse(m, link, &reverse);
    if (r == 0)
        r = emu_gemini_tile_name(m, reverse, receiver.link, sizeof(receiver.link));
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < 3; i++)
        lines_out[i] = receiver;
    lines_out[0].event = EMU_WATCHER_MODE_EXCHANGES;
    lines_out[1].event = EMU_WATCHER_RX_LANEMASK;
    lines_out[1].lane_mask = lane_mask;
    lines_out[2].event = EMU_WATCHER_ERROR;
    lines_out[2].count = 0;
    memset(lines_out[2].peer, 0, sizeof(lines_out[2].peer));
    memcpy(lines_out[2].text, reinit_failed, sizeof(reinit_failed));
    sender = receiver;
    memcpy(sender.link, receiver.peer, sizeof(sender.link));
    memcpy(sender.peer, receiver.link, sizeof(sender.peer));
    sender.time_s += EMU_WATCHER_POLL_S;
    sender.event = EMU_WATCHER_TX_LANEMASK;
    sender.lane_mask = lane_mask;
    lines_out[3] = sender;
    return 0;
}
