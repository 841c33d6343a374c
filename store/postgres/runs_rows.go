package postgres

// The columns of a run, as they are written and read.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob/store"
)

// runFields are the columns of a run, and where a runRow reads each.
var runFields = []struct {
	column string
	dest   func(*runRow) any
}{
	{"id", func(r *runRow) any { return &r.run.ID }},
	{"job_id", func(r *runRow) any { return &r.run.JobID }},
	{"app_name", func(r *runRow) any { return &r.app }},
	{"shard", func(r *runRow) any { return &r.run.Shard }},
	{"trigger_id", func(r *runRow) any { return &r.trigger }},
	{"parent_id", func(r *runRow) any { return &r.parent }},
	{"attempt", func(r *runRow) any { return &r.attempt }},
	{"trigger_type", func(r *runRow) any { return &r.kind }},
	{"scheduled_time", func(r *runRow) any { return &r.scheduled }},
	{"state", func(r *runRow) any { return &r.state }},
	{"executor_sharding_param", func(r *runRow) any { return &r.sharding }},
	{"executor_param", func(r *runRow) any { return &r.param }},
	{"param_set", func(r *runRow) any { return &r.paramSet }},
	{"address_list", func(r *runRow) any { return &r.addresses }},
	{"executor_fail_retry_count", func(r *runRow) any { return &r.run.Retries }},
	{"plan_epoch", func(r *runRow) any { return &r.epoch }},
	{"job_version", func(r *runRow) any { return &r.version }},
	{"executor_handler", func(r *runRow) any { return &r.handler }},
	{"executor_block_strategy", func(r *runRow) any { return &r.block }},
	{"executor_address", func(r *runRow) any { return &r.address }},
	{"start_owner", func(r *runRow) any { return &r.owner }},
	{"start_token", func(r *runRow) any { return &r.token }},
	{"kill_reason", func(r *runRow) any { return &r.kill }},
	{"add_time", func(r *runRow) any { return &r.created }},
	{"trigger_time", func(r *runRow) any { return &r.started }},
	{"taken_time", func(r *runRow) any { return &r.taken }},
	{"handle_time", func(r *runRow) any { return &r.ended }},
	{"trigger_msg", func(r *runRow) any { return &r.message }},
	{"handle_msg", func(r *runRow) any { return &r.handle }},
	{"no_retry", func(r *runRow) any { return &r.noRetry }},
	{"alarm_status", func(r *runRow) any { return &r.run.AlarmStatus }},
	{"first_time", func(r *runRow) any { return &r.first }},
	{"last_time", func(r *runRow) any { return &r.last }},
	{"instants", func(r *runRow) any { return &r.instants }},
	{"reason", func(r *runRow) any { return &r.why }},
	{"executor_boot_id", func(r *runRow) any { return &r.boot }},
	{"late_noted", func(r *runRow) any { return &r.lateNoted }},
	{"progress", func(r *runRow) any { return &r.progress }},
	{"progress_text", func(r *runRow) any { return &r.progressText }},
	{"born", func(r *runRow) any { return &r.born }},
	{"retries_set", func(r *runRow) any { return &r.retriesSet }},
	{"reruns", func(r *runRow) any { return &r.reruns }},
	{"snoozes", func(r *runRow) any { return &r.snoozes }},
	{"snoozed", func(r *runRow) any { return &r.snoozed }},
	{"depth", func(r *runRow) any { return &r.depth }},
	{"business_time", func(r *runRow) any { return &r.business }},
	{"trace", func(r *runRow) any { return &r.trace }},
	{"routed", func(r *runRow) any { return &r.routed }},
	{"instant_time", func(r *runRow) any { return &r.instant }},
}

// runColumns are these columns, each behind the alias l.
var runColumns = func() string {
	list := make([]string, len(runFields))
	for i, f := range runFields {
		list[i] = "l." + f.column
	}
	return strings.Join(list, ", ")
}()

// listedColumns are runColumns for a list: with store.WithShortTexts, of the texts that may be long
// what it has, so that of those which are stored apart no more is read. The statement has an argument for
// how much that is: below 0, all.
func listedColumns(argument string) string {
	list := make([]string, len(runFields))
	for i, f := range runFields {
		switch list[i] = "l." + f.column; f.column {
		case "executor_param", "handle_msg":
			list[i] = fmt.Sprintf("case when %[1]s::int < 0 then %[2]s when %[1]s::int > 0 then pg_catalog.left(%[2]s, %[1]s::int) end as %[3]s", argument, list[i], f.column)
		case "trigger_msg", "routed", "address_list":
			list[i] = fmt.Sprintf("case when %s::int < 0 then %s end as %s", argument, list[i], f.column)
		}
	}
	return strings.Join(list, ", ")
}

// runsListed are the columns of runs that a list of the context reads, which has an argument for that
// where it reads less than all.
func (q *listing) runsListed(ctx context.Context) string {
	if most := textsOf(ctx); most != allTexts {
		return listedColumns(q.arg(most))
	}
	return runColumns
}

// allTexts is the argument for texts as they are.
const allTexts = -1

// textsOf is the argument for how much a list has of a text.
func textsOf(ctx context.Context) int {
	if most, short := store.ShortTexts(ctx); short {
		return min(most, math.MaxInt32)
	}
	return allTexts
}

// runRow is a row of xxl_job_log as it is read.
type runRow struct {
	run                                        store.Run
	state                                      int16
	trigger, parent, epoch, token, version     pgtype.Int8
	first, last, scheduled, business, instant  pgtype.Int8
	attempt, progress, depth                   pgtype.Int2
	instants                                   pgtype.Int4
	app, kind, sharding, param, handler, block repeated
	address, owner, kill, message, handle, why repeated
	boot, progressText, trace, routed          repeated
	said                                       spelling
	paramSet, noRetry, lateNoted               pgtype.Bool
	born, retriesSet, snoozed                  pgtype.Bool
	reruns, snoozes                            pgtype.Int2
	created, started, taken, ended             pgtype.Timestamptz
	addresses                                  []string
	dest, some                                 []any  // of all columns, and of those that a row has something new in
	nulls                                      []bool // the columns that were null in the row before
}

// repeated is a text that is mostly the same from row to row: while it is, no copy
// of it is made. Null is empty.
type repeated struct{ text string }

// ScanBytes implements pgtype.BytesScanner.
func (r *repeated) ScanBytes(b []byte) error {
	if string(b) != r.text {
		r.text = string(b)
	}
	return nil
}

// scan reads the row. Columns that are put in front go where the first call says;
// the later ones say the same.
func (r *runRow) scan(rows pgx.Rows, more ...any) (store.Run, error) {
	if r.dest == nil {
		r.dest = append(make([]any, 0, len(more)+len(runFields)), more...)
		for _, f := range runFields {
			r.dest = append(r.dest, f.dest(r))
		}
		r.some, r.nulls = make([]any, len(r.dest)), make([]bool, len(r.dest))
	}
	r.addresses = nil
	if err := rows.Scan(r.news(rows.RawValues())...); err != nil {
		return store.Run{}, err
	}
	return r.value(), nil
}

// news are where the columns of a row go, nil for those that are null as they were in the row before:
// most columns of a run are null.
func (r *runRow) news(row [][]byte) []any {
	if len(row) != len(r.dest) {
		return r.dest // Scan says what is wrong
	}
	for i, value := range row {
		isNull := value == nil
		if r.some[i] = r.dest[i]; isNull && r.nulls[i] {
			r.some[i] = nil
		}
		r.nulls[i] = isNull
	}
	return r.some
}

func (r *runRow) value() store.Run {
	out := r.run
	out.App, out.Type, out.State = r.app.text, store.TriggerType(r.kind.text), stateOf(r.state, r.snoozed)
	out.TriggerID, out.ParentID, out.Attempt = r.trigger.Int64, r.parent.Int64, int(r.attempt.Int16)
	if !r.trigger.Valid {
		out.TriggerID = out.ID
	}
	out.Scheduled = fromMilli(r.scheduled.Int64)
	out.Sharding = parseSharding(r.sharding.text)
	out.Param, out.ParamSet, out.Addresses = r.param.text, r.paramSet.Bool, r.addresses
	out.PlanEpoch, out.JobVersion = r.epoch.Int64, r.version.Int64
	out.Handler, out.Block, out.Address = r.handler.text, r.block.text, r.address.text
	out.Owner, out.Token, out.KillReason = ownerOf(r.owner.text, out.Address), r.token.Int64, r.kill.text
	out.Created, out.Started = stamp(r.created), stamp(r.started)
	out.Taken, out.Ended = stamp(r.taken), stamp(r.ended)
	out.TriggerMsg = r.said.of(r.routed.text, r.kind.text, r.block.text, r.address.text, r.message.text)
	out.HandleMsg, out.NoRetry = r.handle.text, r.noRetry.Bool
	out.First, out.Last, out.Count = fromMilli(r.first.Int64), fromMilli(r.last.Int64), int(r.instants.Int32)
	out.Born, out.RetriesSet = r.born.Bool || out.Type.ScheduleBorn(), r.retriesSet.Bool
	out.Depth, out.Business = int(r.depth.Int16), fromMilli(r.business.Int64)
	out.StandsFor = fromMilli(r.instant.Int64)
	out.Reruns, out.Snoozes = int(r.reruns.Int16), int(r.snoozes.Int16)
	out.Progress, out.ProgressText = int(r.progress.Int16), r.progressText.text
	out.Reason, out.BootID, out.LateNoted, out.Trace = r.why.text, r.boot.text, r.lateNoted.Bool, r.trace.text
	return out
}

// stateOf is a state as it is stored, which knows no snoozed runs.
func stateOf(state int16, snoozed pgtype.Bool) store.State {
	if s := store.State(state); s != store.StateSucceeded || !snoozed.Bool {
		return s
	}
	return store.StateSnoozed
}

// ownerOf is the incarnation that started a run: mostly the one that it is
// addressed to, and then it is not stored twice.
func ownerOf(owner, address string) string {
	if owner != "" {
		return owner
	}
	incarnation, _ := store.LocalIncarnation(address)
	return incarnation
}

// ownerColumn is what start_owner holds for the owner of a run at the address;
// nothing stands for null.
func ownerColumn(owner, address string) string {
	if isAt(owner, address) {
		return ""
	}
	return owner
}

// isAt reports whether the address is that of the owner's own executors.
func isAt(owner, address string) bool {
	incarnation, attached := store.LocalIncarnation(address)
	return attached && incarnation == owner
}

// extended is dst with room for n more behind it, which are zero.
func extended[T any](dst []T, n int) (all, added []T) {
	all = slices.Grow(dst, n)[:len(dst)+n]
	added = all[len(dst):]
	clear(added)
	return all, added
}

// readRuns appends each row to the list.
func readRuns(list *[]store.Run) result {
	var row runRow
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows)
		if err == nil {
			if len(*list) == cap(*list) { // a page of many is copied seldom
				*list = slices.Grow(*list, 3*len(*list)+1)
			}
			*list = append(*list, run)
		}
		return err
	}
}

// readNamedRuns is readRuns for rows that begin with the names of their jobs.
func readNamedRuns(list *[]store.Run) result {
	var row runRow
	var name, key repeated
	var secret pgtype.Bool // null where the job is removed
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows, &name, &key, &secret)
		if err == nil {
			run.JobName, run.JobKey, run.Secret = name.text, key.text, secret.Bool
			*list = append(*list, run)
		}
		return err
	}
}

// shardingColumn is XXL-JOB's executor_sharding_param, null for none.
func shardingColumn(s store.Sharding) *string {
	if s == (store.Sharding{}) {
		return nil
	}
	text := s.String()
	return &text
}

func parseSharding(text string) (s store.Sharding) {
	index, total, ok := strings.Cut(text, "/")
	if ok {
		s.Index, _ = strconv.Atoi(index)
		s.Total, _ = strconv.Atoi(total)
	}
	return s
}

// milli is a time as a bigint column holds it: milliseconds, 0 for none.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// stamp is a timestamptz as callers get it.
func stamp(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// nonempty is null for the empty string.
func nonempty(s string) *string {
	if s == "" {
		return nil // and nothing is allocated, as it would be if the address of s were taken
	}
	text := s
	return &text
}

// nonzero is null for zero.
func nonzero(n int64) *int64 {
	if n == 0 {
		return nil
	}
	number := n
	return &number
}

// flag is null for false.
func flag(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}
