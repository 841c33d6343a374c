// Package web has what a console needs of the web, whatever its pages are about: where a request
// comes from, how fast its body has to come, answers that are compressed, files that pages refer to,
// readings that viewers share, passwords and logins that have failed, text of others on a page, and
// readings of clocks. It knows nothing of jobs, of rights and of pages.
package web
