package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// itoa writes a number.
func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// clock writes an instant.
func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05.000") }

// moment writes a moment.
func moment(us int64) string { return time.UnixMicro(us).UTC().Format("15:04:05.000000") }

// stateName writes a value of the state column.
func stateName(s int) string {
	names := [...]string{"planned", "started", "dispatched", "succeeded", "failed", "timed out", "killed", "lost", "refused", "discarded", "skipped", "cancelled"}
	if 0 <= s && s < len(names) {
		return names[s]
	}
	return fmt.Sprint("state ", s)
}

// describe says what the rows of an instant are.
func describe(rows []Row) string {
	if len(rows) == 0 {
		return "no row"
	}
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("row %d (%s %s, owner %q, started %s, ended %s, %s %s)",
			r.Run, r.Type, stateName(r.State), r.Owner, clockOrNever(r.Started), clockOrNever(r.Ended), r.Reason, r.Message))
	}
	return strings.Join(all, ", ")
}

func clockOrNever(ms int64) string {
	if ms == 0 {
		return "never"
	}
	return clock(ms)
}
