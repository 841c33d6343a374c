// Package web has what a console needs of the web, whatever its pages are about: a request and its
// answer (Exchange) below a mount, with its form and how fast that has to come, its cookies, and what
// goes compressed; where it comes from, what is wrong with it (Problem), the way through a list
// (Pager), files that pages refer to, readings that viewers share, passwords and logins that have
// failed, and text of others on a page. It knows nothing of jobs, of rights and of pages.
package web
