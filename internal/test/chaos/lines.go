//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// The logs of runs in the database. In: their pages, when all is over. Out: their lines, for the
// auditor.

// readLines reads the pages of all logs.
func readLines(ctx context.Context, db *pgx.Conn, schema string) (lines []audit.Line, err error) {
	rows, err := db.Query(ctx, fmt.Sprintf("select run_id, first_line, last_line, content from %s.xxl_job_log_page order by 1, 2", schema))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	// What a handler writes at an event. Other lines are of the executor, such as a panic's.
	ofEvent := regexp.MustCompile(`^\S+ \S+ INFO (start|end) at=(\d+)$`)
	for rows.Next() {
		var run int64
		var first, last int
		var page []byte
		if err := rows.Scan(&run, &first, &last, &page); err != nil {
			return nil, err
		}
		here, n, err := linesOf(run, page, ofEvent)
		if err == nil && n != last-first+1 {
			err = fmt.Errorf("it has %d lines", n)
		}
		if err != nil {
			return nil, fmt.Errorf("the page of run %d with the lines %d to %d: %w", run, first, last, err)
		}
		lines = append(lines, here...)
	}
	return lines, rows.Err()
}

// linesOf are the lines of a page of a run that are of events, and how many there are in all.
func linesOf(run int64, page []byte, ofEvent *regexp.Regexp) (lines []audit.Line, n int, err error) {
	in := bufio.NewScanner(flate.NewReader(bytes.NewReader(page)))
	for ; in.Scan(); n++ {
		if m := ofEvent.FindStringSubmatch(in.Text()); m != nil {
			at, err := strconv.ParseInt(m[2], 10, 64)
			if err != nil {
				return nil, n, err
			}
			lines = append(lines, audit.Line{Run: run, Kind: m[1], At: at})
		}
	}
	return lines, n, in.Err()
}
