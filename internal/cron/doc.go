// Package cron compiles cron expressions and finds their next instants.
//
// Two dialects live here. [Parse] reads the dialect of the Quartz scheduler
// (six or seven fields, 1 is Sunday, exactly one "?", L, W and #), because
// stored schedules of that family must keep their meaning. [ParseCrontab]
// reads the five fields of crontab(5), or a tag such as "@daily".
//
// Both work in two steps. A schedule knows nothing of time zones: it answers
// "which is the first matching wall clock reading at or after this one?" on
// plain civil seconds, a count of seconds since 1970-01-01 00:00:00 as if every
// day had 24 hours. One common mapping then turns a civil reading into an
// instant of a zone, and there the daylight saving rules of a [Policy] are
// decided, once, for both dialects.
//
//	Parse ──► Expr ────────────┐
//	                           ├──► civil seconds ──► zone and Policy ──► instant
//	ParseCrontab ──► Crontab ──┘
//
// [Crontab.SecondOpinion] compares how gronx reads a crontab expression, for
// those who save it. No instant comes from there.
//
// Compiled values are immutable and safe for concurrent use. Schedules cover
// the years 1970 to 2199; beyond that there is no next instant.
package cron
