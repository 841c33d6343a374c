// Who has just logged in need not press the button that leads on to the form. It is sent while the
// page loads, so that going back does not come here again.
document.getElementById("goon").submit()
