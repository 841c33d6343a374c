// Package schedule says when a job is due: values, and the instants that follow from them.
//
// A [Schedule] is a comparable value, stored as XXL-JOB's schedule_type and schedule_conf plus
// a zone, so that an edit can tell whether it changed. [Cron] takes Quartz's dialect,
// [Crontab] that of Unix and [CronSeconds] that of robfig/cron; [FixedRate], [FixedDelay], [At]
// and [Manual] are the others. A schedule that is wrong is an [Error], which says what is wrong with it in the language
// of whoever reads it.
//
// # Instants
//
// internal/cron compiles Quartz's dialect to bit sets. It answers "the first matching reading
// of the wall clock at or after this one" on plain civil seconds; one mapping from there to
// instants decides what happens when clocks change, for all dialects ([DST]). Crontab is
// compiled to the same sets and searched by the same code.
//
// gronx, which shares no code with that, is evidence and fires nothing, since many systems read
// crontabs as it does. Tests and a fuzz target compare both, with a list of what gronx is known
// to get wrong. Where a crontab expression is saved, gronx is asked for the minutes, the hours
// and each day of the year to come; where it reads one differently, the job is saved and fires
// as read here, and a warning shows both readings. The search of gronx, which
// can give up or take half a second, is not called; the questions are bounded, a panic is an
// answer, and no lock is held.
//
// # The memo
//
// Compiled expressions and zones are remembered at package level, in two bounded maps under one
// lock (crons): the only package-level state of the library. A Schedule has to stay comparable
// and has no place for what it was compiled to. A memo in the scheduler would leave
// Schedule.Next to compile each time, and Job.Window, which stores call under their locks, to
// read the zone from a file.
package schedule
