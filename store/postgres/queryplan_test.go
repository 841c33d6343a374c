package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// planMode is a way to have a statement planned.
type planMode struct {
	name, setting string
	old           bool // a run of a month ago has not ended
}

// A plan is made once for all arguments, or for those of the call.
const forAll, forArguments = "force_generic_plan", "force_custom_plan"

// TestPlans explains every statement, with data of a month. Plans have to stay
// good in the mode in which they suffer most: made once for all arguments. Then
// the planner knows no id, so it cannot tell which partitions matter, and guesses
// ten elements for each array. A server that is left to itself has either that plan, or one for the
// arguments: which of them it comes to is asked, by six calls, only where that one is not good, or
// where there has to be one for all.
func TestPlans(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("it makes a million runs; leave out -short")
	}
	t.Parallel()
	d := newPlanData(t)
	e := newExplainer(t, d.Store)
	d.checkCovered(t)
	for _, m := range []planMode{{"generic", forAll, false}, {"for the arguments", forArguments, false}, {"generic, with an unended run of a month ago", forAll, true}} {
		began := time.Now()
		d.floor.Store(idAt(d.estimate().Add(-openMargin)))
		if err := d.Store.floors.raise(t.Context(), d.Store); err != nil {
			t.Fatal(err)
		}
		if m.old {
			d.floor.Store(d.old)
		}
		var table strings.Builder
		for _, c := range d.planCases() {
			if m.old && c.reach != reachOpen {
				continue
			}
			s, err := e.run(t.Context(), m.setting, c.st.sql, c.st.args, "analyze, buffers")
			if err != nil {
				t.Errorf("%s: %s: %v", m.name, c.name, err)
				continue
			}
			wrong := d.check(c, m, s)
			if len(wrong) > 0 {
				// Other tests make and drop schemas in this server. A session that lags behind them reads its
				// catalog anew, whichever statement it is at: a second look has the statement alone.
				if s, err = e.run(t.Context(), m.setting, c.st.sql, c.st.args, "analyze, buffers"); err != nil {
					t.Errorf("%s: %s: %v", m.name, c.name, err)
					continue
				}
				wrong = d.check(c, m, s)
			}
			fmt.Fprintf(&table, "%-28s %s\n", c.name, s)
			if m.setting == forArguments && (c.kept || len(wrong) > 0) {
				keeps, err := e.keepsPlan(t.Context(), c.st.sql, c.st.args)
				switch {
				case err != nil:
					t.Errorf("%s: %s: %v", m.name, c.name, err)
				case keeps:
					continue // it has the plan that was looked at above
				case c.kept:
					wrong = append(wrong, "it is planned anew for each call")
				}
			}
			for _, wrong := range wrong {
				t.Errorf("%s: %s: %s\n%s", m.name, c.name, wrong, s)
			}
		}
		t.Logf("%s (%.1fs)\n%-28s %s\n%s", m.name, time.Since(began).Seconds(), "statement", planHead, table.String())
	}
}

// checkCovered makes sure that a statement without a case is noticed.
func (d *planData) checkCovered(t *testing.T) {
	t.Helper()
	cases := map[string]string{}
	for _, c := range d.planCases() {
		name, _, _ := strings.Cut(c.name, " ")
		cases[name] = c.st.sql
	}
	for name, q := range d.sql.all() {
		if cases[name] != q.text {
			t.Errorf("planCases has no case for %s", name)
		}
	}
}

// check compares what a statement did with what its case allows. Figures are
// coarse: they tell a lookup of each row from a look at all rows.
func (d *planData) check(c planCase, m planMode, s planSum) (wrong []string) {
	for _, table := range s.seq {
		if strings.HasPrefix(table, "xxl_job") && !slices.Contains(c.scans, table) {
			wrong = append(wrong, "a sequential scan of "+table)
		}
	}
	if s.rows < c.rows {
		wrong = append(wrong, fmt.Sprintf("%d rows, want at least %d: the case shows nothing", s.rows, c.rows))
	}
	if most := d.reachable(c); len(s.parts) > most {
		wrong = append(wrong, fmt.Sprintf("%d partitions, want at most %d", len(s.parts), most))
	}
	if c.wide {
		return wrong
	}
	batch := max(s.rows, c.batch)
	if most := c.wasted + 60; s.wasted > most {
		wrong = append(wrong, fmt.Sprintf("%d rows looked at in vain, want at most %d", s.wasted, most))
	}
	if most := 4*batch + 2*c.wasted + 150; s.examined > most {
		wrong = append(wrong, fmt.Sprintf("%d rows looked at, want at most %d", s.examined, most))
	}
	// With an old run, each serial start looks into each partition.
	if most := 60*batch + 8*c.wasted + 1500; !m.old && s.blocks > most {
		wrong = append(wrong, fmt.Sprintf("%d buffers, want at most %d", s.blocks, most))
	}
	return wrong
}

// reachable is how many partitions the statement may look into.
func (d *planData) reachable(c planCase) int {
	switch c.reach {
	case reachOne:
		return 1
	case reachIDs:
		return 2 // the ids may be of both sides of midnight
	case reachOpen:
		lo, hi := d.openRange()
		return int(idTime(hi).Truncate(day).Sub(idTime(lo).Truncate(day))/day) + 1
	case reachAll:
		return planDays + partitionsAhead
	}
	return 0
}

// TestPlansOfEmptyTables explains the statements of the loop before a table was
// analyzed for the first time. A plan that is made then lives on while the tables
// fill, until autovacuum comes by: so it may not read tables from end to end
// either, however small they look.
func TestPlansOfEmptyTables(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("leave out -short")
	}
	t.Parallel()
	d := &planData{Store: emptyPlanStore(t), jobs: planJobs}
	d.readClock(t)
	d.pretend()
	e := newExplainer(t, d.Store)
	for _, c := range d.planCases() {
		if slices.ContainsFunc([]string{"Jobs ", "Runs ", "SearchJobs ", "SearchRuns ", "SearchChanges ", "schedules "}, func(p string) bool { return strings.HasPrefix(c.name, p) }) {
			continue // nobody asks for pages many times a second
		}
		s, err := e.run(t.Context(), "force_generic_plan", c.st.sql, c.st.args, "costs off")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, table := range []string{"xxl_job_log", "xxl_job_log_page", "xxl_job_next"} {
			if slices.Contains(s.seq, table) {
				t.Errorf("%s: a sequential scan of %s", c.name, table)
			}
		}
	}
}

// planNodeJSON is a node of a plan as EXPLAIN prints it.
type planNodeJSON struct {
	Type      string         `json:"Node Type"`
	Relation  string         `json:"Relation Name"`
	Index     string         `json:"Index Name"`
	IndexCond string         `json:"Index Cond"`
	Rows      float64        `json:"Actual Rows"`
	Loops     float64        `json:"Actual Loops"`
	Filtered  float64        `json:"Rows Removed by Filter"`
	Rechecked float64        `json:"Rows Removed by Index Recheck"`
	Hit       int            `json:"Shared Hit Blocks"`
	Read      int            `json:"Shared Read Blocks"`
	Plans     []planNodeJSON `json:"Plans"`
}

// planTree is what EXPLAIN prints for a statement.
type planTree struct {
	Plan      planNodeJSON
	Planning  float64 `json:"Planning Time"`
	Execution float64 `json:"Execution Time"`
}

// planSum is what the checks go by.
type planSum struct {
	rows      int      // of the statement
	examined  int      // rows that scans of tables looked at
	wasted    int      // rows that scans looked at in vain
	blocks    int      // buffers that were read
	parts     []string // partitions that were looked into
	seq       []string // tables with a sequential scan, also where it was not executed
	indexes   []string // of tables
	planning  float64
	execution float64
	generic   bool
}

// planHead names the columns of a planSum's text.
const planHead = "  rows  looked-at in-vain buffers parts plan-ms  exec-ms mode    indexes; sequential scans"

func (s planSum) String() string {
	mode := "custom"
	if s.generic {
		mode = "generic"
	}
	text := fmt.Sprintf("%6d %10d %7d %7d %5d %7.1f %8.2f %-7s %s", s.rows, s.examined, s.wasted, s.blocks, len(s.parts), s.planning, s.execution, mode, strings.Join(s.indexes, " "))
	if len(s.seq) > 0 {
		text += "; " + strings.Join(s.seq, " ")
	}
	return text
}

// tableOf is a table of the plan, by one name for all partitions.
func tableOf(relation string) string {
	switch {
	case strings.HasPrefix(relation, "xxl_job_log_page_2"):
		return "xxl_job_log_page"
	case isPartition(relation):
		return "xxl_job_log"
	}
	return relation
}

func isPartition(relation string) bool {
	return strings.HasPrefix(relation, "xxl_job_log_2") || strings.HasPrefix(relation, "xxl_job_log_page_2")
}

// walk takes in a node and those below it.
func (s *planSum) walk(n *planNodeJSON) {
	seen := int((n.Rows + n.Filtered + n.Rechecked) * n.Loops)
	if n.Relation != "" && n.Type != "ModifyTable" {
		if strings.HasPrefix(n.Relation, "xxl_job") { // and not the server's own tables
			s.examined += seen
			s.wasted += int((n.Filtered + n.Rechecked) * n.Loops)
		}
		if isPartition(n.Relation) && n.Loops > 0 && !slices.Contains(s.parts, n.Relation) {
			s.parts = append(s.parts, n.Relation)
		}
		if n.Type == "Seq Scan" && !slices.Contains(s.seq, tableOf(n.Relation)) {
			s.seq = append(s.seq, tableOf(n.Relation))
		}
	}
	if n.Index != "" && n.Loops > 0 {
		name := indexOf(n.Index)
		if n.IndexCond == "" {
			name += "(whole)"
		}
		if !slices.Contains(s.indexes, name) {
			s.indexes = append(s.indexes, name)
		}
	}
	for i := range n.Plans {
		s.walk(&n.Plans[i])
	}
}

// indexOf is the name of an index without the day of its partition.
func indexOf(name string) string {
	name = strings.TrimPrefix(name, "xxl_job_")
	if rest, ok := strings.CutPrefix(name, "log_2"); ok {
		_, rest, _ = strings.Cut(rest, "_")
		return "log_" + rest
	}
	return name
}

// explainer explains statements as the store's connections run them: prepared,
// with arguments as pgx sends them.
type explainer struct {
	conn  *pgx.Conn
	types *pgtype.Map
	n     int
}

func newExplainer(t testing.TB, s *Store) *explainer {
	t.Helper()
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	return &explainer{conn: conn.Conn(), types: conn.Conn().TypeMap()}
}

// run explains the statement in a transaction that is rolled back, under a
// plan_cache_mode.
func (e *explainer) run(ctx context.Context, mode, sql string, args []any, options string) (sum planSum, err error) {
	p, err := e.prepare(ctx, sql, args)
	if err != nil {
		return sum, err
	}
	defer e.conn.Deallocate(ctx, p.name)
	return e.explain(ctx, p, planned(mode), options)
}

// planned is what a transaction sets for its plans: as setOurPath has it, and each transaction.
func planned(mode string) string {
	return "set local jit = off; set local plan_cache_mode = " + mode
}

// keepsPlan reports whether the server, left to itself, comes to one plan for all arguments. It tries
// five plans for the arguments before it looks whether one for all of them would be as cheap.
func (e *explainer) keepsPlan(ctx context.Context, sql string, args []any) (bool, error) {
	p, err := e.prepare(ctx, sql, args)
	if err != nil {
		return false, err
	}
	defer e.conn.Deallocate(ctx, p.name)
	sum, err := e.explain(ctx, p, planned("auto")+strings.Repeat("; explain "+p.call, 5), "costs off")
	return sum.generic, err
}

// preparedPlan is a statement that the server keeps the plan of.
type preparedPlan struct {
	name string
	call string // executes it
}

func (e *explainer) prepare(ctx context.Context, sql string, args []any) (p preparedPlan, err error) {
	e.n++
	p.name = fmt.Sprintf("plan_%d", e.n)
	sd, err := e.conn.Prepare(ctx, p.name, sql)
	if err != nil {
		return p, err
	}
	call, err := e.call(sd.ParamOIDs, args)
	if err != nil {
		e.conn.Deallocate(ctx, p.name)
		return p, err
	}
	p.call = "execute " + p.name + call
	return p, nil
}

// explain explains a prepared statement behind some SQL, in a transaction that is rolled
// back.
func (e *explainer) explain(ctx context.Context, p preparedPlan, setup, options string) (sum planSum, err error) {
	tx, err := e.conn.Begin(ctx)
	if err != nil {
		return sum, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if err := e.conn.PgConn().Exec(ctx, setup).Close(); err != nil {
		return sum, err
	}
	var text []byte
	if err := tx.QueryRow(ctx, "explain ("+options+", format json) "+p.call, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		return sum, err
	}
	var trees []planTree
	if err := json.Unmarshal(text, &trees); err != nil {
		return sum, err
	}
	if err := tx.QueryRow(ctx, "select generic_plans > 0 from pg_catalog.pg_prepared_statements where name = $1", pgx.QueryExecModeExec, p.name).Scan(&sum.generic); err != nil {
		return sum, err
	}
	top := &trees[0]
	sum.walk(&top.Plan)
	sum.rows = int(top.Plan.Rows)
	sum.blocks, sum.planning, sum.execution = top.Plan.Hit+top.Plan.Read, top.Planning, top.Execution
	return sum, nil
}

// call renders arguments as literals, by way of the types that pgx would send.
func (e *explainer) call(oids []uint32, args []any) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if len(oids) != len(args) {
		return "", fmt.Errorf("%d arguments, want %d", len(args), len(oids))
	}
	var list []string
	for i, oid := range oids {
		text, err := e.types.Encode(oid, pgtype.TextFormatCode, args[i], []byte{})
		if err != nil {
			return "", fmt.Errorf("argument %d: %w", i+1, err)
		}
		if text == nil {
			list = append(list, "null")
			continue
		}
		list = append(list, quoted(string(text)))
	}
	return "(" + strings.Join(list, ", ") + ")", nil
}

// quoted is a literal that reads the same whatever standard_conforming_strings is.
func quoted(text string) string {
	return " E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}
