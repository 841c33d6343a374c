// Package browser has the tests of the console in a real browser: what its pages look like, that
// no policy is broken on them and no rule of accessibility, and that one can work with them by
// mouse, by keyboard and without scripts. It is a module of its own, so that nobody who uses the
// console depends on what drives a browser.
//
// install.sh installs the browser and fonts for Chinese. Where there is none the tests are
// skipped, unless XXLJOB_REQUIRE_BROWSER=1, or CI=true, makes that a failure. XXLJOB_BROWSER names another
// one. XXLJOB_BROWSER_ALL=1 shows each page in every language, theme and width; otherwise each
// is shown in one combination, which changes with the commit. Pictures of the pages are kept in
// the directory XXLJOB_SCREENSHOTS, or where go test keeps artefacts. Those of the documents
// (docpictures_test.go) go to XXLJOB_DOC_PICTURES where it is set, as make pictures has it.
package browser
