// Package web has what a console needs of the web, whatever its pages are about: a request and its
// answer (Exchange) below a mount, with its form and how fast that has to come, its cookies, and what
// goes compressed; where it comes from and how often somebody may ask (Asker), what is wrong with it
// (Problem), the way through a list (Pager), files that pages refer to, readings that viewers share, and
// text of others on a page. It knows nothing of jobs, of users and of pages.
package web
