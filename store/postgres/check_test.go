package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xxljob/xxljob/store"
)

// TestServersThatDoNotFit: a server this old is not to be had for tests.
func TestServersThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		server server
		want   string
	}{
		{server{version: 130000, encoding: "UTF8", holds: "UTF8"}, ""},
		{server{version: 180001, encoding: "SQL_ASCII", holds: "SQL_ASCII"}, ""},
		{server{version: 120022, encoding: "UTF8", holds: "UTF8"}, "the server has version 12.22; 13 or later is needed"},
		{server{version: 150000, encoding: "UTF8", holds: "UTF8", recovering: true}, "is a standby"},
		{server{version: 150000, encoding: "UTF8", holds: "LATIN1"}, ""},
		{server{version: 150000, encoding: "SQL_ASCII", holds: "LATIN1"}, "client_encoding is SQL_ASCII, and the server keeps LATIN1; add client_encoding=UTF8"},
		{server{version: 150000, encoding: "WIN1252", holds: "UTF8"}, "client_encoding is WIN1252"},
	} {
		err := c.server.fit()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.server, err, c.want)
		}
	}
}

// TestRefusals: what the server would answer again, and what it would not.
func TestRefusals(t *testing.T) {
	for code, want := range map[string]bool{
		"22021": true, "22P05": true, "23505": true, "42P01": true, "54000": true, "0A000": true, "P0001": true, "57014": true,
		"ZZ001": true, "45000": true, "38000": true, "39004": true, "44000": true, "27000": true, "09000": true, "21000": true, "2F002": true, "3F000": true,
		"08006": false, "40001": false, "40P01": false, "53300": false, "55P03": false, "57P01": false, "25006": false, "58030": false, "XX000": false, "": false,
		"26000": false, "28P01": false, "2D000": false, "3D000": false, "72000": false, "F0000": false,
	} {
		err := failed(fmt.Errorf("send: %w", &pgconn.PgError{Code: code}), "finish %d runs", 3)
		var pg *pgconn.PgError
		if errors.Is(err, store.ErrRefused) != want || !errors.As(err, &pg) || pg.Code != code {
			t.Errorf("%q: %v", code, err)
		}
	}
	for constraint, want := range map[string]bool{"": false, "a_check_of_the_host": true} {
		if err := failed(&pgconn.PgError{Code: "23514", TableName: "xxl_job_log", ConstraintName: constraint}, "claim"); errors.Is(err, store.ErrRefused) != want {
			t.Errorf("a constraint %q: %v", constraint, err)
		}
	}
	if late := failed(errors.Join(context.DeadlineExceeded, &pgconn.PgError{Code: "57014"}), "finish"); errors.Is(late, store.ErrRefused) {
		t.Errorf("the end of the caller's time: %v", late)
	}
}

// TestErrorsAreKnownInAnyLanguage: lc_messages is the server's affair.
func TestErrorsAreKnownInAnyLanguage(t *testing.T) {
	missing := &pgconn.PgError{Code: "23514", Message: "keine Partition von Relation »xxl_job_log« für die Zeile gefunden", TableName: "xxl_job_log"}
	check := &pgconn.PgError{Code: "23514", TableName: "xxl_job_log", ConstraintName: "a_check_of_the_host"}
	twice := &pgconn.PgError{Code: "23505", Message: "doppelter Schlüsselwert", TableName: "xxl_job_log_20251121", ConstraintName: "xxl_job_log_20251121_pkey"}
	key := &pgconn.PgError{Code: "23505", TableName: "xxl_job_info", ConstraintName: "xxl_job_info_key"}
	if !noPartition(missing) || noPartition(check) || noPartition(twice) {
		t.Error("a missing partition is not told from other errors")
	}
	if !sameRunID(twice) || sameRunID(key) || sameRunID(missing) {
		t.Error("an id that was made twice is not told from other errors")
	}
	if !alreadyThere(&pgconn.PgError{Code: "42809", Message: "»x« ist bereits eine Partition"}) {
		t.Error("a partition that is there already is not recognised")
	}
}
