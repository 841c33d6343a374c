package store

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Seen is what is seen of a trouble, as data: What names the sentence that Trouble.Detail is, and the
// other fields are what stands in it. Whoever shows troubles in another language words them by it. Its
// zero value says that there is Detail alone.
type Seen struct {
	What SeenWhat
	// Jobs and Runs are how many jobs are not planned, and how many due runs wait or are not started.
	Jobs, Runs int
	// RunID is the run that it is about.
	RunID int64
	// For is for how long it lasts, or how long something waits, or how far a clock was moved.
	For time.Duration
	// At is since when, by the store's clock; of a clock that is ahead, also after a
	// step back, how late it is as that was trusted last.
	At time.Time
	// Names are a zone, a type, a handler, a strategy, or rules of alarms with ", " between them.
	Names string
	// Said is what somebody else says of it, the store or an executor, in words of its own.
	Said string
}

// SeenWhat names a sentence: see Seen.
type SeenWhat string

// What is seen of the troubles of each cause.
const (
	SeenLockedJobs         SeenWhat = "locked-jobs"
	SeenLockedRuns         SeenWhat = "locked-runs"
	SeenLockedBoth         SeenWhat = "locked-both"
	SeenFalseRefusal       SeenWhat = "false-refusal"
	SeenFalseRefusalSecret SeenWhat = "false-refusal-secret"
	SeenSharedInTurns      SeenWhat = "shared-in-turns"
	SeenSharedAnswers      SeenWhat = "shared-answers"
	SeenUnknownZone        SeenWhat = "unknown-zone"
	SeenUnknownType        SeenWhat = "unknown-type"
	SeenUnknownDST         SeenWhat = "unknown-dst"
	SeenNobody             SeenWhat = "nobody"
	SeenNobodyBefore       SeenWhat = "nobody-before"
	SeenNobodyRefused      SeenWhat = "nobody-refused"
	SeenNoHandler          SeenWhat = "no-handler"
	SeenNoGlue             SeenWhat = "no-glue"
	SeenUnreachable        SeenWhat = "unreachable"
	SeenRouterWaits        SeenWhat = "router-waits"
	SeenRouterSilent       SeenWhat = "router-silent"
	SeenRouterEnded        SeenWhat = "router-ended"
	SeenWaitRoom           SeenWhat = "wait-room"
	SeenWaitAddresses      SeenWhat = "wait-addresses"
	SeenWaitProbes         SeenWhat = "wait-probes"
	SeenWaitFormer         SeenWhat = "wait-former"
	SeenWaitTurn           SeenWhat = "wait-turn"
	SeenStalledScan        SeenWhat = "stalled-scan"
	SeenStalledAhead       SeenWhat = "stalled-ahead"
	SeenStalledOwed        SeenWhat = "stalled-owed"
	SeenClockAhead         SeenWhat = "clock-ahead"
	SeenClockBack          SeenWhat = "clock-back"
	SeenClockUnread        SeenWhat = "clock-unread"
	SeenClockJumped        SeenWhat = "clock-jumped"
	SeenRefusesNode        SeenWhat = "refuses-node"
	SeenRefusesWaits       SeenWhat = "refuses-waits"
	SeenRefusesAlarms      SeenWhat = "refuses-alarms"
	SeenRefusesVerdict     SeenWhat = "refuses-verdict"
	SeenRefusesCancel      SeenWhat = "refuses-cancel"
	SeenRefusesTake        SeenWhat = "refuses-take"
	SeenRefusesAccepted    SeenWhat = "refuses-accepted"
	SeenRefusesStart       SeenWhat = "refuses-start"
	SeenRefusesEnd         SeenWhat = "refuses-end"
	SeenRefusesPlan        SeenWhat = "refuses-plan"
	SeenRefusesStop        SeenWhat = "refuses-stop"
	SeenRefusesOwed        SeenWhat = "refuses-owed"
	SeenRefusesWindows     SeenWhat = "refuses-windows"
	SeenRefusesAhead       SeenWhat = "refuses-ahead"
	SeenRefusesRules       SeenWhat = "refuses-rules"
	SeenRefusesRedates     SeenWhat = "refuses-redates"
	SeenUntold             SeenWhat = "untold"
)

// sentences are those of each cause, in English, with the fields of Seen in braces.
var sentences = map[TroubleCause]map[SeenWhat]string{
	TroubleLockedRows: {
		SeenLockedJobs: "somebody's transaction holds rows that the scheduler has to lock: {jobs} jobs are not planned, due more than {for} ago",
		SeenLockedRuns: "somebody's transaction holds rows that the scheduler has to lock: {runs} runs are not started, due more than {for} ago",
		SeenLockedBoth: "somebody's transaction holds rows that the scheduler has to lock: {jobs} jobs are not planned and {runs} runs are not started, due more than {for} ago",
	},
	TroubleFalseRefusal: {
		SeenFalseRefusal:       "run {run} was refused in the name of the executor, which has run it all the same: {said}",
		SeenFalseRefusalSecret: "run {run} was refused in the name of the executor, which has run it all the same",
	},
	TroubleSharedAddress: {
		SeenSharedInTurns: "the address is registered by several processes, or answered for by them, in turns: what one process answers there says nothing about the runs of another, so that lost runs are found late, and kills and logs may not come to the right one",
		SeenSharedAnswers: "the address answers that a job is idle and that it is busy, in turns: what one process answers there says nothing about the runs of another, so that lost runs are found late, and kills and logs may not come to the right one",
	},
	TroubleUnknownZone: {
		SeenUnknownZone: "this node has no data of the zone {names}",
	},
	TroubleUnknownSchedule: {
		SeenUnknownType: "this node knows no schedules of the type {names}",
		SeenUnknownDST:  "this node does not know what {names} is to mean where clocks change",
	},
	TroubleNoExecutor: {
		SeenNobody:        "the app has no live executor: {jobs} jobs are not planned, and {runs} due runs wait for one",
		SeenNobodyBefore:  "the app had no live executor until this node came: {jobs} jobs were not planned, and {runs} due runs have waited for one",
		SeenNobodyRefused: "due runs have ended as refused: the app has no live executor",
		SeenNoHandler:     "due runs have ended as refused: no executor of the app has the handler {names}",
		SeenNoGlue:        "due runs have ended as refused: no executor of the app runs scripts of the kind {names}",
		SeenUnreachable:   "due runs have ended as refused: none of the addresses of the app can be reached from here",
	},
	TroubleUnknownRouter: {
		SeenRouterWaits:  "no live node has the routing strategy {names}: its due runs wait for one, each for {for}",
		SeenRouterEnded:  "no live node has the routing strategy {names}, or none that has it answers, and the run has waited for one for {for}",
		SeenRouterSilent: "no node with the routing strategy {names} answers: {said}: its due runs wait for one, each for {for}",
	},
	TroubleStuckRuns: {
		SeenWaitRoom:      "{runs} due runs wait for room in a lane: executors have not answered earlier triggers, the oldest since {at}",
		SeenWaitAddresses: "{runs} due runs wait for the addresses of the app, which cannot be read, the oldest since {at}",
		SeenWaitProbes:    "{runs} due runs wait for answers to probes, the oldest since {at}",
		SeenWaitFormer:    "{runs} due runs wait until it is known what a former owner of their shard has left, the oldest since {at}",
		SeenWaitTurn:      "{runs} due runs wait for their turn to be started, the oldest since {at}",
		SeenStalledScan:   "scanning for due jobs has failed for {for}: {said}",
		SeenStalledAhead:  "moving runs that were planned far ahead has failed for {for}: {said}",
		SeenStalledOwed:   "triggering what follows a success has failed for {for}: {said}",
	},
	TroubleClock: {
		SeenClockAhead:  "the store's clock was moved ahead by {for}; nothing is deleted and nothing expires by its age until the clock has gone on steadily for an hour",
		SeenClockBack:   "the store's clock was moved back by {for}; nothing is deleted and nothing expires by its age until the clock has gone on steadily for an hour",
		SeenClockUnread: "it is not known yet how late it was when the store's clock was last trusted; nothing is deleted and nothing expires by its age until it is",
		SeenClockJumped: "the store's clock is {for} ahead of what it was when a node last trusted it, and it is not known whether no node was there for so long; nothing is deleted and nothing expires by its age while that is so, or, where no node was there, until the clock has gone on steadily for an hour",
	},
	TroubleRefused: {
		SeenRefusesNode:     "the store refuses that executors of the app are attached to this node, so that other nodes hand it no runs of it: {said}",
		SeenRefusesWaits:    "the store refuses to mend some jobs that wait for a run which has ended: {said}",
		SeenRefusesAlarms:   "the store refuses the alarms of some runs that are late: {said}",
		SeenRefusesVerdict:  "the store refuses to decide about its run {run}, whose node is gone: {said}",
		SeenRefusesCancel:   "the store refuses to cancel its run {run}: {said}",
		SeenRefusesTake:     "the store refuses to have its run {run} taken by this node: {said}",
		SeenRefusesAccepted: "the store refuses to note that the executor has accepted its run {run}: {said}",
		SeenRefusesStart:    "the store refuses to start its run {run}: {said}",
		SeenRefusesEnd:      "the store refuses to start its run {run}, and to record it as refused: {said}",
		SeenRefusesPlan:     "the store refuses to plan its runs: {said}",
		SeenRefusesStop:     "the store refuses to plan its runs, and to stop it: {said}",
		SeenRefusesOwed:     "the store refuses to trigger what follows some successes: {said}",
		SeenRefusesWindows:  "the store refuses to close some windows that are over: {said}",
		SeenRefusesAhead:    "the store refuses to move some runs that were planned far ahead: {said}",
		SeenRefusesRedates:  "the store refuses to mend some runs that a clock which was ahead has dated: {said}",
		SeenRefusesRules:    "the store refuses to keep some rules of alarms, which tell of nothing: {said}",
	},
	TroubleUntold: {
		SeenUntold: "alarms were given up that nobody has told of for a day, of the rules {names}",
	},
}

// SeenOf returns what may be seen of troubles of a cause, in order of its names.
func SeenOf(cause TroubleCause) []SeenWhat { return slices.Sorted(maps.Keys(sentences[cause])) }

// String is what is seen in a sentence, in English, without a stop; empty where What is, or is of a newer
// release.
func (s Seen) String() string {
	if s.What == "" {
		return ""
	}
	for _, of := range sentences {
		if text, has := of[s.What]; has {
			return strings.NewReplacer("{jobs}", strconv.Itoa(s.Jobs), "{runs}", strconv.Itoa(s.Runs), "{run}", strconv.FormatInt(s.RunID, 10), "{for}", s.For.String(),
				"{at}", s.At.UTC().Format(time.RFC3339), "{names}", s.Names, "{said}", s.Said).Replace(text)
		}
	}
	return ""
}
