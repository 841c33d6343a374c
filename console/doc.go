// Package console is the web console of package xxljob: jobs, runs, their logs, and who has
// changed what, in a browser. It is one http.Handler that a host mounts:
//
//	h, err := console.New(console.Config{Store: store, Scheduler: s, Auth: console.Accounts()})
//	if err != nil { … }
//	mux.Handle("/console/", http.StripPrefix("/console", h))
//
// It works at any path, since all of its links are relative to the page, behind a proxy that
// rewrites paths too. Pages are made here, work without scripts, and are refreshed in parts
// where there are any. There is nothing to start or to close.
//
// Users are the console's own, kept in the store (Accounts), or the host says who a request is
// from (Func, Basic). Nothing is open that the host has not opened.
package console

// Where things are, for who changes them.
//
// A request comes in at console.go and goes through guard.go: the table in routes.go says who may ask for
// it and what answers, permission.go is the one place that decides what somebody may, ratelimit.go how
// often. What an error means for who asks is in problem.go, with what is said of it.
//
// The rooms below know nothing of pages, each has what belongs to one question, and this package holds
// what they make:
//
//	internal/web    what came and how it is answered: an Exchange is one request and its answer (form,
//	                query, addresses, cookies, compression, the way through a list), a Mount where the
//	                console is, a Problem an answer that is not what was asked for
//	internal/login  who asks, where users are the console's own: sessions, tokens, passwords, tries, and
//	                the code for the first user. What somebody may do is here (permission.go), for it
//	                goes by the roles of auth.go and by the app of a job or run, which are read here
//	internal/look   how an answer looks to somebody: language, zone, what else was chosen, and times and
//	                lengths of time in words
//	internal/lang   the catalogues of words
//	internal/diff   how two texts differ
//
// A request of this package has an Exchange, a Look, a User, and what is asked about.
//
// A page is a method of request that reads, fills a struct of plain values and shows a template of the
// same name with it: the list of jobs is jobs.go, jobsPage and template/jobs.html. Files are named
// after what they are about, job and run first: joblinks.go, jobsave.go, runlog.go. page.go has what
// templates may ask of any page, and the frame around it; live.go regions that are refreshed.
//
// A column of a list is a line of tables (columns.go) and a template of its cells (template/table.html).
// A field of a job is a line of formGroups (formgroups.go), from which form, page and record of changes
// take its name and its value. A sign is a symbol of template/signs.html. Words are in lang, by key, in
// each language. The stylesheet has layers (asset/console.css says which), and asset/live.js alone
// decides what is refreshed when.
//
// Tests ask the handler over HTTP (helper_test.go). A new route needs a line in the tables of
// rights_test.go and attack_test.go, a new word one in each language, a new page one in
// browser/pages_test.go.
