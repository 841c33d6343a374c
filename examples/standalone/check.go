package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// check says what is wrong with the flags, in their words, before anything starts: no
// database is connected to, and no file of jobs applied.
func (o options) check() error {
	var errs []error
	fault := func(err error, format string, args ...any) {
		if err != nil {
			errs = append(errs, fmt.Errorf(format+": %w", append(args, err)...))
		}
	}
	if o.runFor < 0 {
		errs = append(errs, fmt.Errorf("-for %v: want a time from now on, or 0 for no end", o.runFor))
	}
	if _, err := newCaller(o.allow); err != nil {
		errs = append(errs, err) // names the flag
	}
	if err := errors.Join(o.checkTokens(), o.checkJobsAPI(), o.checkConsole()); err != nil {
		errs = append(errs, err)
	}
	if o.store != "" {
		_, err := pgxpool.ParseConfig(o.store) // the error shows no password
		fault(err, "%s", o.storeFrom)
		errs = append(errs, o.checkSchema())
	}
	if o.logs != "" {
		fault(os.MkdirAll(o.logs, 0o700), "-logs %s", o.logs)
	}
	if o.jobs != "" {
		fault(checkJobs(o.jobs), "-jobs")
	}
	return errors.Join(errs...)
}

// schemaName is what the store takes for its schema.
var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*$`)

// checkSchema is for what is known without the database.
func (o options) checkSchema() error {
	switch {
	case o.schema == "":
		return errors.New("-schema: want a name")
	case strings.HasPrefix(o.schema, "pg_"), o.schema == "information_schema":
		return fmt.Errorf("-schema %s: that, and names that begin with pg_, are the server's", o.schema)
	case !schemaName.MatchString(o.schema) || len(o.schema) > 63:
		return fmt.Errorf("-schema %q: want [A-Za-z_][A-Za-z0-9_$]*, at most 63 bytes", o.schema)
	}
	return nil
}
