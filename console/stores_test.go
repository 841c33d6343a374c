package console_test

// The stores on which the tests run: each in memory, and those of the table below in Postgres too.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
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
	"TestARewritingProxy":                        TestARewritingProxy,
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
	"TestAssets":                                 TestAssets,
	"TestBadScheduleThatIsStored":                TestBadScheduleThatIsStored,
	"TestBasic":                                  TestBasic,
	"TestBodies":                                 TestBodies,
	"TestBranchesOfARun":                         TestBranchesOfARun,
	"TestBrowserWithoutCookies":                  TestBrowserWithoutCookies,
	"TestBulk":                                   TestBulk,
	"TestBulkTag":                                TestBulkTag,
	"TestBulkTagAgainstOthers":                   TestBulkTagAgainstOthers,
	"TestBulkTagFaults":                          TestBulkTagFaults,
	"TestBulkTagOfMany":                          TestBulkTagOfMany,
	"TestBulkTagReadOnly":                        TestBulkTagReadOnly,
	"TestBulkTagWhileTheStoreFails":              TestBulkTagWhileTheStoreFails,
	"TestBulkThatIsNone":                         TestBulkThatIsNone,
	"TestBulkWhileTheStoreFails":                 TestBulkWhileTheStoreFails,
	"TestChangesAreFiltered":                     TestChangesAreFiltered,
	"TestColumnsAreChosen":                       TestColumnsAreChosen,
	"TestColumnsAreNotShared":                    TestColumnsAreNotShared,
	"TestColumnsOfNoListAreForgotten":            TestColumnsOfNoListAreForgotten,
	"TestConflict":                               TestConflict,
	"TestEachChangeIsRecorded":                   TestEachChangeIsRecorded,
	"TestEachChangeWhileTheStoreFails":           TestEachChangeWhileTheStoreFails,
	"TestEachOwnChangeWhileTheStoreFails":        TestEachOwnChangeWhileTheStoreFails,
	"TestEachPageHasOneHeading":                  TestEachPageHasOneHeading,
	"TestEachPageWhileTheStoreFails":             TestEachPageWhileTheStoreFails,
	"TestEachRouteIsRecorded":                    TestEachRouteIsRecorded,
	"TestEntriesOfNoAppAreLeftOut":               TestEntriesOfNoAppAreLeftOut,
	"TestExportIsRedacted":                       TestExportIsRedacted,
	"TestExportOfHostileTexts":                   TestExportOfHostileTexts,
	"TestExportOfMany":                           TestExportOfMany,
	"TestExportReadOnly":                         TestExportReadOnly,
	"TestExportRights":                           TestExportRights,
	"TestExportThatIsTooLarge":                   TestExportThatIsTooLarge,
	"TestExportWhileTheStoreFails":               TestExportWhileTheStoreFails,
	"TestFactsOfARun":                            TestFactsOfARun,
	"TestFaultsAreSaid":                          TestFaultsAreSaid,
	"TestFaultsOfSchedules":                      TestFaultsOfSchedules,
	"TestFaultsStandAtTheirFields":               TestFaultsStandAtTheirFields,
	"TestFilesAskNobody":                         TestFilesAskNobody,
	"TestFiltersThatAreNone":                     TestFiltersThatAreNone,
	"TestFirstUser":                              TestFirstUser,
	"TestFirstView":                              TestFirstView,
	"TestForgedRequests":                         TestForgedRequests,
	"TestFormAsItIs":                             TestFormAsItIs,
	"TestHashesAreMadeAnew":                      TestHashesAreMadeAnew,
	"TestHeaders":                                TestHeaders,
	"TestHiddenParameter":                        TestHiddenParameter,
	"TestHostileRuns":                            TestHostileRuns,
	"TestHowManyLines":                           TestHowManyLines,
	"TestInstantsAroundClockChanges":             TestInstantsAroundClockChanges,
	"TestJobFilters":                             TestJobFilters,
	"TestJobPage":                                TestJobPage,
	"TestJobPagesHaveWords":                      TestJobPagesHaveWords,
	"TestKeptFormIsNotSaved":                     TestKeptFormIsNotSaved,
	"TestKillAndAgain":                           TestKillAndAgain,
	"TestKinOfARun":                              TestKinOfARun,
	"TestLargestKeptForm":                        TestLargestKeptForm,
	"TestLimitsOfTheForm":                        TestLimitsOfTheForm,
	"TestListsAreFiltered":                       TestListsAreFiltered,
	"TestLogIsFollowed":                          TestLogIsFollowed,
	"TestLogIsSearched":                          TestLogIsSearched,
	"TestLogOfARun":                              TestLogOfARun,
	"TestLoggedOutMeanwhile":                     TestLoggedOutMeanwhile,
	"TestLogin":                                  TestLogin,
	"TestLogsOfAnySize":                          TestLogsOfAnySize,
	"TestLongTextsAreComparedByLine":             TestLongTextsAreComparedByLine,
	"TestLookOfWhoHasNoAccount":                  TestLookOfWhoHasNoAccount,
	"TestLookThatIsNone":                         TestLookThatIsNone,
	"TestLoopback":                               TestLoopback,
	"TestLoopbackTrustsNoProxy":                  TestLoopbackTrustsNoProxy,
	"TestManyFields":                             TestManyFields,
	"TestManyRunsAtOnce":                         TestManyRunsAtOnce,
	"TestMountWithoutItsSlash":                   TestMountWithoutItsSlash,
	"TestMounts":                                 TestMounts,
	"TestNoEnglishTails":                         TestNoEnglishTails,
	"TestNoFormOfOthers":                         TestNoFormOfOthers,
	"TestNoLog":                                  TestNoLog,
	"TestNobodyCanBeAsked":                       TestNobodyCanBeAsked,
	"TestNothingIsCutWithoutAWord":               TestNothingIsCutWithoutAWord,
	"TestOnce":                                   TestOnce,
	"TestPasswordsThatAreWeak":                   TestPasswordsThatAreWeak,
	"TestPaths":                                  TestPaths,
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
	"TestTheFormOfRuns":                          TestTheFormOfRuns,
	"TestTheHostLogsIn":                          TestTheHostLogsIn,
	"TestTheRunsOfAJobInOrder":                   TestTheRunsOfAJobInOrder,
	"TestTheSwitchOfLiveIsKept":                  TestTheSwitchOfLiveIsKept,
	"TestThereAndBack":                           TestThereAndBack,
	"TestTimesAroundClockChanges":                TestTimesAroundClockChanges,
	"TestTitleLabelAndZone":                      TestTitleLabelAndZone,
	"TestViewed":                                 TestViewed,
	"TestViewedThatPanics":                       TestViewedThatPanics,
	"TestWaitingRunsAreInOrder":                  TestWaitingRunsAreInOrder,
	"TestWaitingRunsAreLookedAtWhileTheyAreLate": TestWaitingRunsAreLookedAtWhileTheyAreLate,
	"TestWhatIsDoneFromAList":                    TestWhatIsDoneFromAList,
	"TestWhatIsPastIsNotPolled":                  TestWhatIsPastIsNotPolled,
	"TestWhatIsSharedIsSmall":                    TestWhatIsSharedIsSmall,
	"TestWhatMayNotBeDoneIsNotDrawn":             TestWhatMayNotBeDoneIsNotDrawn,
	"TestWhoSeesOtherAppsSharesNothing":          TestWhoSeesOtherAppsSharesNothing,
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

// TestBothStoresAreTested: whoever writes a test with a site has it run on both stores.
func TestBothStoresAreTested(t *testing.T) {
	for name, uses := range testsOfThis(t) {
		_, listed := both[name]
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
