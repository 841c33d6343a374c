package console_test

// The stores on which the tests run: each in memory, and those of the table below in Postgres too.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// Store is what each of the stores of this module is, so that what wraps one has all of it.
type Store = storetest.Whole

// onPostgres is the name of the test below which a store is one in Postgres.
const onPostgres = "TestOnPostgres/"

// newStore opens an empty store for a test.
func newStore(t *testing.T) Store {
	t.Helper()
	if strings.HasPrefix(t.Name(), onPostgres) {
		return openPostgres(t)
	}
	return memory.New()
}

// both are the tests of the console on a store, but for those whose time is virtual: the time of a
// server is not. What a page shows of what is stored, and what is stored of a form, is to be the
// same with each store.
var both = map[string]func(*testing.T){
	"TestAHashThatIsNotMadeAnew":                 TestAHashThatIsNotMadeAnew,
	"TestALongWayBack":                           TestALongWayBack,
	"TestALookChosenOnAnAnswer":                  TestALookChosenOnAnAnswer,
	"TestAPasswordThatHasJustBeenChanged":        TestAPasswordThatHasJustBeenChanged,
	"TestARunByItsNumber":                        TestARunByItsNumber,
	"TestASearchSaysHowFarItGot":                 TestASearchSaysHowFarItGot,
	"TestAStoreThatFailsOrIsSlow":                TestAStoreThatFailsOrIsSlow,
	"TestATokenGoesBeforeACookie":                TestATokenGoesBeforeACookie,
	"TestATokenIsWithinItsUser":                  TestATokenIsWithinItsUser,
	"TestAWrongTokenIsNotUsed":                   TestAWrongTokenIsNotUsed,
	"TestAddAndCopy":                             TestAddAndCopy,
	"TestAfterTheLogin":                          TestAfterTheLogin,
	"TestAllOfIt":                                TestAllOfIt,
	"TestAnythingByItsNumber":                    TestAnythingByItsNumber,
	"TestBadScheduleThatIsStored":                TestBadScheduleThatIsStored,
	"TestBranchesOfARun":                         TestBranchesOfARun,
	"TestBrowserWithoutCookies":                  TestBrowserWithoutCookies,
	"TestBulk":                                   TestBulk,
	"TestBulkTag":                                TestBulkTag,
	"TestBulkTagAgainstOthers":                   TestBulkTagAgainstOthers,
	"TestBulkTagFaults":                          TestBulkTagFaults,
	"TestBulkTagReadOnly":                        TestBulkTagReadOnly,
	"TestBulkTagWhileTheStoreFails":              TestBulkTagWhileTheStoreFails,
	"TestBulkThatIsNone":                         TestBulkThatIsNone,
	"TestBulkWhileTheStoreFails":                 TestBulkWhileTheStoreFails,
	"TestChangesAreFiltered":                     TestChangesAreFiltered,
	"TestColumnsAreChosen":                       TestColumnsAreChosen,
	"TestConflict":                               TestConflict,
	"TestEachChangeIsRecorded":                   TestEachChangeIsRecorded,
	"TestEachChangeWhileTheStoreFails":           TestEachChangeWhileTheStoreFails,
	"TestEachOwnChangeWhileTheStoreFails":        TestEachOwnChangeWhileTheStoreFails,
	"TestEachPageWhileTheStoreFails":             TestEachPageWhileTheStoreFails,
	"TestEachRouteIsRecorded":                    TestEachRouteIsRecorded,
	"TestEntriesOfNoAppAreLeftOut":               TestEntriesOfNoAppAreLeftOut,
	"TestExportIsRedacted":                       TestExportIsRedacted,
	"TestExportOfHostileTexts":                   TestExportOfHostileTexts,
	"TestExportReadOnly":                         TestExportReadOnly,
	"TestExportRights":                           TestExportRights,
	"TestFactsOfARun":                            TestFactsOfARun,
	"TestFaultsAreSaid":                          TestFaultsAreSaid,
	"TestFaultsStandAtTheirFields":               TestFaultsStandAtTheirFields,
	"TestFiltersThatAreNone":                     TestFiltersThatAreNone,
	"TestFirstUser":                              TestFirstUser,
	"TestFormAsItIs":                             TestFormAsItIs,
	"TestHashesAreMadeAnew":                      TestHashesAreMadeAnew,
	"TestHiddenParameter":                        TestHiddenParameter,
	"TestHostileRuns":                            TestHostileRuns,
	"TestHowManyLines":                           TestHowManyLines,
	"TestInstantsAroundClockChanges":             TestInstantsAroundClockChanges,
	"TestJobFilters":                             TestJobFilters,
	"TestJobPage":                                TestJobPage,
	"TestKeptFormIsNotSaved":                     TestKeptFormIsNotSaved,
	"TestKillAndAgain":                           TestKillAndAgain,
	"TestKinOfARun":                              TestKinOfARun,
	"TestListsAreFiltered":                       TestListsAreFiltered,
	"TestLogIsFollowed":                          TestLogIsFollowed,
	"TestLogIsSearched":                          TestLogIsSearched,
	"TestLogOfARun":                              TestLogOfARun,
	"TestLoggedOutMeanwhile":                     TestLoggedOutMeanwhile,
	"TestLogin":                                  TestLogin,
	"TestLogsOfAnySize":                          TestLogsOfAnySize,
	"TestLongTextsAreComparedByLine":             TestLongTextsAreComparedByLine,
	"TestLookOfWhoHasNoAccount":                  TestLookOfWhoHasNoAccount,
	"TestManyRunsAtOnce":                         TestManyRunsAtOnce,
	"TestNoFormOfOthers":                         TestNoFormOfOthers,
	"TestNoLog":                                  TestNoLog,
	"TestNobodyCanBeAsked":                       TestNobodyCanBeAsked,
	"TestNothingIsCutWithoutAWord":               TestNothingIsCutWithoutAWord,
	"TestOnce":                                   TestOnce,
	"TestPreviewWithoutScripts":                  TestPreviewWithoutScripts,
	"TestQuestionsOfPages":                       TestQuestionsOfPages,
	"TestRecordInWords":                          TestRecordInWords,
	"TestRemoveNeedsTheName":                     TestRemoveNeedsTheName,
	"TestRestore":                                TestRestore,
	"TestRights":                                 TestRights,
	"TestRowsThatAreRefusedAreNotRecorded":       TestRowsThatAreRefusedAreNotRecorded,
	"TestRunsAreFiltered":                        TestRunsAreFiltered,
	"TestRunsInThreeLanguages":                   TestRunsInThreeLanguages,
	"TestScriptsAreNotInTheRecord":               TestScriptsAreNotInTheRecord,
	"TestStoreFailsWhileSaving":                  TestStoreFailsWhileSaving,
	"TestTextsAreHidden":                         TestTextsAreHidden,
	"TestTheAppOfTheFormDecidesNothing":          TestTheAppOfTheFormDecidesNothing,
	"TestTheHostLogsIn":                          TestTheHostLogsIn,
	"TestTheRunsOfAJobInOrder":                   TestTheRunsOfAJobInOrder,
	"TestTheSwitchOfLiveIsKept":                  TestTheSwitchOfLiveIsKept,
	"TestThereAndBack":                           TestThereAndBack,
	"TestTimesAroundClockChanges":                TestTimesAroundClockChanges,
	"TestViewed":                                 TestViewed,
	"TestWaitingRunsAreInOrder":                  TestWaitingRunsAreInOrder,
	"TestWaitingRunsAreLookedAtWhileTheyAreLate": TestWaitingRunsAreLookedAtWhileTheyAreLate,
	"TestWhatIsDoneFromAList":                    TestWhatIsDoneFromAList,
	"TestWhatIsPastIsNotPolled":                  TestWhatIsPastIsNotPolled,
	"TestWhoSeesOtherAppsSharesNothing":          TestWhoSeesOtherAppsSharesNothing,
}

// alone are tests with a store that run in memory only: those of how the console is mounted, of what
// it says and of what it refuses before it asks the store, and those of very many jobs, in which
// the store is asked what the tests of a few ask it.
var alone = []string{
	"TestARewritingProxy",
	"TestAssets",
	"TestBasic",
	"TestBodies",
	"TestColumnsAreNotShared",
	"TestColumnsOfNoListAreForgotten",
	"TestEachPageHasOneHeading",
	"TestFaultsOfSchedules",
	"TestFilesAskNobody",
	"TestFirstView",
	"TestForgedRequests",
	"TestHeaders",
	"TestJobPagesHaveWords",
	"TestLargestKeptForm",
	"TestLimitsOfTheForm",
	"TestLookThatIsNone",
	"TestLoopback",
	"TestLoopbackTrustsNoProxy",
	"TestManyFields",
	"TestMountWithoutItsSlash",
	"TestMounts",
	"TestNoEnglishTails",
	"TestPasswordsThatAreWeak",
	"TestPaths",
	"TestTheFormOfRuns",
	"TestTitleLabelAndZone",
	"TestViewedThatPanics",
	"TestWhatIsSharedIsSmall",
	"TestWhatMayNotBeDoneIsNotDrawn",

	"TestBulkTagOfMany",
	"TestExportOfMany",
	"TestExportThatIsTooLarge",
	"TestExportWhileTheStoreFails",
}

// TestOnPostgres runs the tests of the console with a store in Postgres.
func TestOnPostgres(t *testing.T) {
	pgtest.SharedPool(t) // without one, all of it is skipped, or fails, once
	for name, test := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// TestBothStoresAreTested: whoever writes a test with a site has it run on both stores, or says that
// the store does not matter to it.
func TestBothStoresAreTested(t *testing.T) {
	for name, uses := range testsOfThis(t) {
		_, listed := both[name]
		if slices.Contains(alone, name) {
			if listed {
				t.Errorf("%s is in both lists", name)
			}
			continue
		}
		switch stored := uses["newSite"] || uses["newStore"] || uses["faulty"]; {
		case stored && !uses["synctest"] && !listed:
			t.Errorf("%s is to be among those that run on both stores", name)
		case listed && uses["synctest"]:
			t.Errorf("%s cannot run in Postgres: its time is virtual", name)
		case listed && !stored:
			t.Errorf("%s uses no store", name)
		}
	}
}

// testsOfThis are the tests of this package, and the names that occur in each.
func testsOfThis(t *testing.T) map[string]map[string]bool {
	t.Helper()
	tests := map[string]map[string]bool{}
	for _, entry := range must1(os.ReadDir(".")) {
		if !strings.HasSuffix(entry.Name(), "_test.go") || entry.Name() == "stores_test.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			used := map[string]bool{}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = true
				}
				return true
			})
			tests[f.Name.Name] = used
		}
	}
	return tests
}
