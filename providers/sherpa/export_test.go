package sherpa

// TryBy lets a test say which program tries.
var TryBy = tryBy
