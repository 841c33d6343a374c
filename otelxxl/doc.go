// Package otelxxl is OpenTelemetry for a scheduler of module xxljob: metrics of what happens
// at a node, and traces from who asks for a run to the handler, through hand-over to another
// node and over HTTP. It imports the API of OpenTelemetry alone; which SDK and exporters there
// are is the program's to say.
//
//	tel, err := otelxxl.New(otelxxl.Config{TracerProvider: tp, MeterProvider: mp})
//	...
//	s, err := xxljob.New(store, tel.Configure(xxljob.Config{App: "shop"}))
//	...
//	err = tel.Observe(ctx, s)
//
// Programs that only execute put Middleware into executor.Config.Middleware. Those that plan runs
// with TriggerTx of store/postgres, and have no scheduler, give a Telemetry as Config.Tracer of
// that store.
//
// # Traces
//
// Spans go by the conventions for messaging, since that is what a run is: a row that one process
// writes, another sends, and a third receives; it may wait for hours, and has an ID. (Those for
// functions as a service describe a platform that starts functions, and know no hand-over.)
//
//	trigger            PRODUCER  who asks: Trigger and the like, TriggerTx
//	dispatch APP       CLIENT    the node that sends the run to an executor elsewhere, until that
//	                             has accepted it; INTERNAL where the executor is its own
//	process HANDLER    CONSUMER  the handler, with its error as the span's status
//
// Each is the child of the one before. The row keeps the trace of the trigger, and so do its
// retries, the parts of a broadcast, and what its success leads to: each of their dispatches is
// a further child of the trigger, so that one trace has all that came of it, and is sampled as
// a whole. They are children and no links, because a run has one cause, and what looks for
// slow traces does not follow links. The runs of schedules have no cause: each dispatch of one
// begins a trace, and so does that of a retry of it, for nothing is written into its row. All
// spans of a trigger's runs have xxljob.trigger.id.
//
// # Metrics
//
// Observe registers what Scheduler.Stats knows, asked for at each collection, and counts what
// Scheduler.Events tells. Instruments says what there is. Attributes have few values: apps (at
// most 200; further ones are "other"), states, types of triggers, lanes, methods of the store,
// kinds of what should not happen, places of panics (200 as well).
// Config.JobKeys adds the key of the job to the three of runs. Exemplars come from the run's
// trace, also where a schedule began it, as long as this node has sent it.
// Alarms and jobs that stop are rare: their series are there before, with 0, by rule and cause, and
// by app once the app is known, so that a query for what has increased sees the first of them.
//
// # Series
//
// OpenTelemetry's SDK keeps 2,000 series of an instrument, and adds up what is beyond them as
// otel.metric.overflow, without any attribute. The outcomes of 200 apps, by ten types of triggers
// and ten states, may be 20,000 series, and those of 1,000 jobs (Config.JobKeys) 120,000, though
// few jobs know more than two types and three states. So say what you expect:
//
//	mp := metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(25_000))
//
// A limit costs nothing where it is not reached. Histograms have some twenty numbers a series.
//
// # Faults of providers
//
// A provider that panics costs what it was asked for, and is logged once a place. One that does
// not return within 100 ms, or five seconds where nobody waits (events), is left behind, and not
// asked again for ten seconds. The log says when that begins and when it is over, and how much
// was left out. Spans, handlers, alarms and events have a pause each, and spans that have
// begun are ended in a pause too. The scheduler and handlers go on.
package otelxxl
