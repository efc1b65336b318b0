package inspect_test

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/watchmill/watchmill/engine"
)

// telemetry passes what an engine measures on to OpenTelemetry.
type telemetry struct {
	engine.NoMetrics
	latency metric.Float64Histogram
	waits   metric.Float64Histogram
	ends    metric.Int64Counter
}

// Latency is called by engines.
func (t telemetry) Latency(name string, stage engine.Stage, age time.Duration) {
	t.latency.Record(context.Background(), age.Seconds(),
		metric.WithAttributes(attribute.String("engine", name), attribute.String("stage", string(stage))))
}

// Waited is called by engines.
func (t telemetry) Waited(name string, wait engine.Wait, took time.Duration) {
	t.waits.Record(context.Background(), took.Seconds(),
		metric.WithAttributes(attribute.String("engine", name), attribute.String("wait", string(wait))))
}

// Ended is called by engines.
func (t telemetry) Ended(name string, end engine.WatchEnd) {
	t.ends.Add(context.Background(), 1, metric.WithAttributes(attribute.String("engine", name), attribute.String("reason", end.Reason())))
}

// A bridge to OpenTelemetry is the three methods of engine.Metrics.
func Example_openTelemetry() {
	ctx := context.Background()
	reader := sdk.NewManualReader()
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("watchmill")
	latency, _ := meter.Float64Histogram("watchmill.latency", metric.WithUnit("s"))
	waits, _ := meter.Float64Histogram("watchmill.waits", metric.WithUnit("s"))
	ends, _ := meter.Int64Counter("watchmill.watch.ends")

	host, err := engine.NewHost(engine.HostConfig{Metrics: telemetry{latency: latency, waits: waits, ends: ends}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	topic := engine.NewTopicWith[string](engine.TopicOptions{Host: host, Name: "greetings"})
	w, _ := topic.Watch(ctx, engine.SubscribeOptions{Name: "reader"})
	_, _ = topic.Publish(ctx, "hello")
	_, _ = w.Next(ctx)
	_ = topic.Close()

	var measured metricdata.ResourceMetrics
	_ = reader.Collect(ctx, &measured)
	for _, m := range measured.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			fmt.Println(m.Name, "measured:", len(data.DataPoints) > 0)
		case metricdata.Sum[int64]:
			fmt.Println(m.Name, data.DataPoints[0].Value)
		}
	}
	// Output:
	// watchmill.latency measured: true
	// watchmill.waits measured: true
	// watchmill.watch.ends 1
}
