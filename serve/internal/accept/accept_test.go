package accept_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmill/watchmill/serve/internal/accept"
)

// accepting is a request with the header Accept, which may be given more than once.
func accepting(values ...string) *http.Request {
	return &http.Request{Header: http.Header{"Accept": values}}
}

const (
	asTable     = "application/json;as=Table;g=meta.k8s.io;v=v1"
	asBetaTable = "application/json;as=Table;g=meta.k8s.io;v=v1beta1"
	asPartial   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	protobuf    = "application/vnd.kubernetes.protobuf"
)

// The client gets the form that it prefers of those that are served.
func TestObjects_AreInTheFormThatTheClientPrefers(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   accept.Shape
	}{
		{nil, accept.Whole},
		{[]string{""}, accept.Whole},
		{[]string{"*/*"}, accept.Whole},
		{[]string{"application/*"}, accept.Whole},
		{[]string{asTable}, accept.Table},
		{[]string{asBetaTable}, accept.BetaTable},
		{[]string{asPartial}, accept.Partial},
		{[]string{"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}, accept.Partial},
		{[]string{asTable + "," + asPartial}, accept.Table},
		{[]string{asTable + ";q=0.5," + asPartial}, accept.Partial},
		{[]string{asTable + ";q=0", asPartial + ";q=0.1"}, accept.Partial},
		{[]string{protobuf, "application/json"}, accept.Whole},
		{[]string{"application/json;as=Table;g=meta.k8s.io;v=v2", asTable}, accept.Table},
		{[]string{"/;;", asTable}, accept.Table},
	} {
		got, err := accept.Objects(accepting(c.accept...))
		require.NoError(t, err, c.accept)
		require.Equal(t, accept.Form{Shape: c.want}, got, c.accept)
		require.Equal(t, c.want == accept.Table || c.want == accept.BetaTable, got.Shape.IsTable())
	}
	for _, none := range []string{protobuf, accept.EventStream, "application/json;q=0", "application/json;as=Table;g=example.com;v=v1", "/;;"} {
		_, err := accept.Objects(accepting(none))
		require.True(t, apierrors.IsNotAcceptable(err), none)
	}
}

// Clients name the fields that they do not need, of which managed fields are left out.
func TestObjects_AreLeanIfTheClientDropsManagedFields(t *testing.T) {
	for drop, want := range map[string]bool{"metadata.managedFields": true, "status+metadata.managedFields": true, "status": false} {
		got, err := accept.Objects(accepting("application/json;drop=" + drop + ";q=0.9"))
		require.NoError(t, err)
		require.Equal(t, want, got.Lean, drop)
	}
}

// A watch has one form more than objects.
func TestWatch_MayBeServerSentEvents(t *testing.T) {
	for header, want := range map[string]accept.Shape{accept.EventStream: accept.Events, asTable: accept.Table, "*/*": accept.Whole} {
		got, err := accept.Watch(accepting(header))
		require.NoError(t, err)
		require.Equal(t, accept.Form{Shape: want}, got, header)
	}
}

// Older clients ask for one group at a time.
func TestAggregated_IsWhatTheClientPrefers(t *testing.T) {
	const aggregated = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"
	for header, want := range map[string]bool{
		aggregated: true, aggregated + "beta1,application/json": false, "application/json," + aggregated: false, "": false,
	} {
		got, err := accept.Aggregated(accepting(header))
		require.NoError(t, err)
		require.Equal(t, want, got, header)
	}
	_, err := accept.Aggregated(accepting(protobuf))
	require.True(t, apierrors.IsNotAcceptable(err))
}

// A weight of zero is a refusal.
func TestGzip_IsAccepted(t *testing.T) {
	for header, want := range map[string]bool{
		"gzip": true, "deflate, GZIP;q=0.5": true, "br,gzip": true,
		"": false, "br": false, "gzipped": false, "gzip;q=0": false, "gzip;q=x": false,
	} {
		require.Equal(t, want, accept.Gzip(http.Header{"Accept-Encoding": {header}}), header)
	}
}
