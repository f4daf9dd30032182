// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const scale = 6

// prometheusIndex asks a new histogram about each value.
func prometheusIndex(values []float64) []int32 {
	indices := make([]int32, len(values))
	options := prometheus.HistogramOpts{
		Name:                         "length_seconds",
		NativeHistogramBucketFactor:  1.015, // the widest bucket that is allowed: scale 6 has 1.0109, scale 5 1.0219
		NativeHistogramZeroThreshold: 1e-30,
	}
	for i, v := range values {
		var out dto.Metric
		histogram := prometheus.NewHistogram(options)
		histogram.Observe(v)
		if err := histogram.Write(&out); err != nil {
			panic(err)
		}
		h := out.GetHistogram()
		if h.GetSchema() != scale || len(h.PositiveSpan) != 1 || h.PositiveSpan[0].GetLength() != 1 || h.PositiveDelta[0] != 1 {
			panic(fmt.Sprintf("Prometheus, %v: %v", v, h))
		}
		indices[i] = h.PositiveSpan[0].GetOffset() - 1
	}
	return indices
}

// One histogram with many series, one for each value that is asked about at a time. Its counts begin anew with each
// collection.
const seriesMax = 1000

var otel struct {
	reader    *sdk.ManualReader
	histogram metric.Float64Histogram
	series    [seriesMax][]metric.RecordOption
	collected metricdata.ResourceMetrics
}

func init() {
	otel.reader = sdk.NewManualReader(
		sdk.WithTemporalitySelector(func(sdk.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }),
		sdk.WithAggregationSelector(func(sdk.InstrumentKind) sdk.Aggregation {
			return sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: scale}
		}))
	provider := sdk.NewMeterProvider(sdk.WithReader(otel.reader), sdk.WithExemplarFilter(exemplar.AlwaysOffFilter))
	histogram, err := provider.Meter("oracle").Float64Histogram("length", metric.WithUnit("s"))
	if err != nil {
		panic(err)
	}
	otel.histogram = histogram
	for i := range otel.series {
		otel.series[i] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.Int("value", i)))}
	}
}

func otelIndex(values []float64) []int32 {
	indices := make([]int32, len(values))
	for begin := 0; begin < len(values); begin += seriesMax {
		end := min(begin+seriesMax, len(values))
		collectOtel(values[begin:end], indices[begin:end])
	}
	return indices
}

func collectOtel(values []float64, indices []int32) {
	ctx := context.Background()
	for i, v := range values {
		otel.histogram.Record(ctx, v, otel.series[i]...)
	}
	if err := otel.reader.Collect(ctx, &otel.collected); err != nil {
		panic(err)
	}
	points := otel.collected.ScopeMetrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64]).DataPoints
	if len(points) != len(values) {
		panic(fmt.Sprintf("OpenTelemetry: %d series of %d values", len(points), len(values)))
	}
	for _, p := range points {
		value, _ := p.Attributes.Value("value")
		if p.Scale != scale || len(p.PositiveBucket.Counts) != 1 || p.PositiveBucket.Counts[0] != 1 {
			panic(fmt.Sprintf("OpenTelemetry, %v: %+v", values[value.AsInt64()], p))
		}
		indices[value.AsInt64()] = p.PositiveBucket.Offset
	}
}
