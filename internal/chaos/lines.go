//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/chaos/audit"
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
	for rows.Next() {
		var run int64
		var first, last int
		var page []byte
		if err := rows.Scan(&run, &first, &last, &page); err != nil {
			return nil, err
		}
		here, err := linesOf(run, page)
		if err == nil && len(here) != last-first+1 {
			err = fmt.Errorf("it has %d lines", len(here))
		}
		if err != nil {
			return nil, fmt.Errorf("the page of run %d with the lines %d to %d: %w", run, first, last, err)
		}
		lines = append(lines, here...)
	}
	return lines, rows.Err()
}

// linesOf are the lines of a page of a run.
func linesOf(run int64, page []byte) (lines []audit.Line, err error) {
	in := bufio.NewScanner(flate.NewReader(bytes.NewReader(page)))
	for in.Scan() {
		l := audit.Line{Run: run}
		var day, clock string
		if _, err := fmt.Sscanf(in.Text(), "%s %s INFO %s at=%d", &day, &clock, &l.Kind, &l.At); err != nil {
			return nil, fmt.Errorf("line %q: %w", in.Text(), err)
		}
		lines = append(lines, l)
	}
	return lines, in.Err()
}
