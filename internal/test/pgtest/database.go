package pgtest

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes a database with a collation, and returns its address. A
// collation is named as Postgres names it: "und-x-icu" and others of ICU, which
// need Postgres 15, or one of the system such as "en_US.utf8"; empty stands for
// that of the cluster, and "C/LATIN1" for one and an encoding. The owner must be
// there; empty stands for the superuser.
func (c *Cluster) CreateDatabase(ctx context.Context, name, collation, owner string) (string, error) {
	if owner == "" {
		owner = superuser
	}
	sql := fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0", ident(name), ident(owner))
	collation, encoding, _ := strings.Cut(collation, "/")
	if encoding != "" {
		sql += " ENCODING " + quote(encoding)
	}
	if locale, icu := strings.CutSuffix(collation, "-x-icu"); icu {
		sql += " LOCALE_PROVIDER icu ICU_LOCALE " + quote(locale)
	} else if collation != "" {
		sql += " LOCALE " + quote(collation)
	}
	if _, err := c.Exec(ctx, superuser, sql); err != nil {
		return "", err
	}
	return c.address(owner, name), nil
}

// ident quotes a name for SQL.
func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// quote quotes a text for SQL.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
