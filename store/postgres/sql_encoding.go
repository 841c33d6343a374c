package postgres

// Databases whose encoding lacks characters that texts may have. In: statements that are about to
// be sent. Out: the same; in those that bring what running programs say, for people, there is a
// question mark in place of each such character, so that one message keeps nothing else from being
// stored. In all others the server refuses it, which failed says in words: a name, a key or a
// parameter is never changed.

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// lacks says that an encoding of the server's does not have every character. SQL_ASCII is bytes.
func lacks(encoding string) bool {
	return encoding != "" && encoding != "UTF8" && encoding != "SQL_ASCII"
}

// encoding is what one connection has found out about the characters of its database, which is not
// in UTF-8: the server alone knows which these are.
type encoding struct {
	has map[rune]bool
}

const (
	mostKnown = 1 << 15 // characters that are remembered
	mostAsked = 256     // questions for one statement; what is not known then counts as lacking
)

// fit replaces in what programs say each character that the database lacks, and in all texts what
// is none. It may ask the server, in the transaction that the statements are part of too.
func (e *encoding) fit(ctx context.Context, conn *pgx.Conn, statements []statement) error {
	unknown := map[rune]bool{}
	for _, st := range statements {
		for i, arg := range st.args {
			if changed, is := mapTexts(arg, plainNarrow); is {
				st.args[i] = changed
			}
			if st.said {
				mapTexts(st.args[i], func(text string) string { e.unknown(text, unknown); return text })
			}
		}
	}
	if err := e.ask(ctx, conn, unknown); err != nil {
		return err
	}
	for _, st := range statements {
		for i, arg := range st.args {
			if changed, is := mapTexts(arg, e.narrow); st.said && is {
				st.args[i] = changed
			}
		}
	}
	return nil
}

// plainNarrow is store.PlainText where there is no U+FFFD.
func plainNarrow(text string) string {
	if store.CanBeStored(text) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}

// narrow is a text with question marks for what the database lacks.
func (e *encoding) narrow(text string) string {
	if ascii(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || e.has[r] {
			return r
		}
		return '?'
	}, text)
}

func (e *encoding) unknown(text string, list map[rune]bool) {
	if ascii(text) {
		return
	}
	for _, r := range text {
		if _, known := e.has[r]; !known && r >= utf8.RuneSelf {
			list[r] = true
		}
	}
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ask finds out which of the characters the database has: whether all, and else which half of them.
func (e *encoding) ask(ctx context.Context, conn *pgx.Conn, unknown map[rune]bool) error {
	status := conn.PgConn().TxStatus()
	if len(unknown) == 0 || status == 'E' {
		return nil
	}
	if len(e.has)+len(unknown) > mostKnown {
		clear(e.has)
	}
	runes := make([]rune, 0, len(unknown))
	for r := range unknown {
		runes = append(runes, r)
	}
	q := question{conn: conn, inTx: status == 'T', left: mostAsked, has: e.has}
	if err := q.do(ctx, "savepoint xxljobtext"); err != nil {
		return err
	}
	if err := q.ask(ctx, runes); err != nil {
		return err
	}
	return q.do(ctx, "release savepoint xxljobtext")
}

// question is one call of encoding.ask.
type question struct {
	conn *pgx.Conn
	inTx bool // then there is a savepoint
	left int  // how often it may still ask
	has  map[rune]bool
}

// do runs what is of use in a transaction only.
func (q *question) do(ctx context.Context, sql string) error {
	if !q.inTx {
		return nil
	}
	_, err := q.conn.Exec(ctx, sql)
	return err
}

func (q *question) ask(ctx context.Context, runes []rune) error {
	if q.left--; q.left < 0 {
		return nil
	}
	mode := pgx.QueryExecModeExec
	if speaksSimply(q.conn) {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	_, err := q.conn.Exec(ctx, "select $1::pg_catalog.text", mode, string(runes))
	switch {
	case err == nil:
		for _, r := range runes {
			q.has[r] = true
		}
		return nil
	case codeOf(err) != codeUntranslatable:
		return err
	}
	if err := q.do(ctx, "rollback to savepoint xxljobtext"); err != nil {
		return err
	}
	if len(runes) == 1 {
		q.has[runes[0]] = false
		return nil
	}
	half := len(runes) / 2
	if err := q.ask(ctx, runes[:half]); err != nil {
		return err
	}
	return q.ask(ctx, runes[half:])
}

// mapTexts is an argument with f of each of its texts; is says that this differs. A list that it
// changes is another one then.
func mapTexts(arg any, f func(string) string) (changed any, is bool) {
	switch arg := arg.(type) {
	case string:
		text := f(arg)
		return text, text != arg
	case *string:
		if arg == nil {
			return arg, false
		}
		text := f(*arg)
		return &text, text != *arg
	case []string:
		list := make([]string, len(arg))
		for i, text := range arg {
			list[i] = f(text)
			is = is || list[i] != text
		}
		return list, is
	case []*string:
		list := make([]*string, len(arg))
		for i, text := range arg {
			if text != nil {
				fitting := f(*text)
				list[i], is = &fitting, is || fitting != *text
			}
		}
		return list, is
	}
	return arg, false
}
