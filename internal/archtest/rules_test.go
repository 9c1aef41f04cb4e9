package archtest

// rule says which packages of the module a package may import, tests aside.
// "x/..." stands for x and all below it, "x/*" for all below it. A package
// without a row has that of the nearest folder above it. Every package may
// import what lies below it, and the ground rooms.
type rule struct {
	pkg, may string
	why      string
}

// ground are the lowest rooms, open to every package but one another.
const ground = "prompts internal/text internal/idle internal/lru internal/nearby internal/timeline internal/wire"

// rules is the map of the program: one row a package, lowest rooms first.
var rules = []rule{
	{"prompts", "internal/text internal/text/spoken", "texts and sounds only"},
	{"internal/text", "", "plain helpers for texts"},
	{"internal/text/sentence", "internal/text", "a text into what can be spoken"},
	{"internal/text/intent", "internal/text/*", "what words mean for the turn"},
	{"internal/text/spoken", "internal/text", "numbers and times as people say them"},
	{"internal/text/message", "internal/text", "what people read, by language"},
	{"internal/private", "internal/text/message", "files that nobody else may change or read"},
	{"internal/admintoken", "internal/private internal/text/message", "the owner's secret"},
	{"internal/lru", "", "one bounded cache"},
	{"internal/nearby", "", "which addresses are at home, and which nobody may have asked"},
	{"internal/lockout", "internal/lru", "addresses that guess secrets, lines about strangers"},
	{"internal/idle", "", "work that gives nothing for too long"},
	{"internal/wire", "internal/text", "what passes between a device and its conversation"},
	{"internal/timeline", "internal/text", "what a turn left behind"},

	{"internal/timezone", "prompts", "the zone of the server, and which there are"},

	{"store", "", "it knows SQL, and nothing of ours"},
	{"internal/sealed", "internal/private internal/text/message prompts store", "secrets, sealed"},

	{"audio", "", "formats and arithmetic"},
	{"audio/internal/dsp", "", "the arithmetic of sound"},
	{"audio/internal/libopus", "", "the encoder's one setting that the binding lacks"},
	{"audio/echo", "audio audio/internal/dsp", "the canceller and the device's own voice"},
	{"audio/file", "audio", "containers of sound"},
	{"audio/track", "audio audio/file", "music"},

	{"providers", "audio audio/file", "contracts"},
	{"providers/service", "providers", "what can be set up, and how it is made"},
	{"providers/transport", "providers internal/text internal/text/message", "connections to services, and why they fail"},
	{"providers/sound", "providers providers/transport audio audio/file", "bytes of speech into sound"},
	{"providers/generation", "providers providers/service providers/transport providers/sse internal/text", "the driver of language models behind HTTP"},
	{"providers/platform", "providers providers/generation providers/transport providers/sse prompts", "the driver of services that keep the dialogue"},
	{"providers/recognition", "providers providers/transport audio", "the driver of streaming recognisers"},
	{"providers/duplex", "providers providers/transport audio", "the driver of services that hear and speak by themselves"},
	{"providers/volcframe", "providers providers/transport", "the frames of one vendor's services"},
	{"providers/synthesis", "providers providers/transport providers/sound audio", "the driver of voices behind sockets"},
	{"providers/httpvoice", "providers providers/service providers/transport providers/sound providers/sse internal/text", "the driver of voices behind HTTP"},
	{"providers/catalog", "providers providers/...", "the list of all kinds"},
	{"providers/providertest", "providers providers/service providers/transport audio internal/servicetest internal/text", "contracts and fakes"},
	{"providers/*", "providers providers/service providers/transport providers/sound providers/recognition providers/duplex providers/volcframe providers/synthesis providers/httpvoice providers/generation providers/platform providers/sse audio audio/file internal/text/...", "a technology knows the contracts and what all share, and no other one"},
	{"providers/sherpa/sherpatest", "providers/sherpa/modelfile", "a library and models for tests"},
	{"providers/local/render", "providers audio audio/file providers/local", "a generator, run by hand"},

	{"mcp", "internal/text/message mcp/rawjson mcp/schema", "tools know nothing of talk"},
	{"mcp/rawjson", "", "JSON of strangers"},
	{"mcp/schema", "mcp/rawjson", "schemas of arguments"},
	{"mcp/secret", "internal/private internal/text/message", "secrets that files refer to"},
	{"mcp/router", "internal/text/message mcp mcp/schema mcp/rawjson", "the calls of one device"},
	{"mcp/device", "mcp mcp/schema mcp/rawjson", "the standard dialect of devices"},
	{"mcp/light", "mcp mcp/schema mcp/rawjson", "the light dialect"},
	{"mcp/iot", "internal/text/message mcp mcp/schema mcp/rawjson", "things of older firmware"},
	{"mcp/local", "mcp mcp/schema mcp/rawjson mcp/router internal/text/...", "our own tools"},
	{"mcp/external", "internal/lockout internal/private internal/text/message mcp mcp/device mcp/schema mcp/rawjson mcp/router mcp/secret", "other people's servers"},
	{"mcp/sourcetest", "mcp", "the contract every source meets"},
	{"mcp/gateway", "internal/lockout internal/text/message mcp mcp/schema mcp/rawjson mcp/router", "what is offered outward goes through the router"},
	{"mcp/gateway/catalog", "internal/text/message mcp mcp/schema mcp/rawjson mcp/router", "what is offered to whom"},
	{"mcp/gateway/offer", "internal/private internal/text/message mcp mcp/schema mcp/rawjson mcp/router mcp/secret mcp/gateway/catalog", "the core tools, devices, resources and prompts"},

	{"agent/turn", "internal/text/...", "pure: no clock, lock or goroutine"},
	{"agent/history", "providers", "messages within a budget"},
	{"agent/listen", "agent/turn audio audio/echo providers internal/text/...", "from a frame to a text"},
	{"agent/speak", "agent/turn audio audio/* providers internal/text/...", "from a segment to frames"},
	{"agent/think", "agent/history agent/speak mcp mcp/router providers internal/text/...", "model steps and the tools between them"},
	{"agent", "mcp mcp/router audio audio/* providers internal/text/...", "a conversation never sees a socket or a vendor"},
	{"agent/feature", "agent/think agent/turn mcp mcp/router providers internal/text/...", "what conversation and plug-ins know of one another"},
	{"agent/feature/*", "agent/feature agent/think agent/turn mcp mcp/router providers internal/text/...", "a plug-in knows its host, not the conversation"},
	{"agent/feature/alarm/storetest", "agent/feature/alarm internal/text", "the contract that every store of reminders meets"},
	{"agent/record", "agent/... mcp/... audio providers", "a recording knows the contracts of a conversation only"},

	{"connection/identity", "internal/lockout", "who a device is: it knows no transport and no disk"},
	{"connection/identity/recordstest", "connection/identity", "the contract of what keeps the known devices"},
	{"connection", "internal/lockout mcp mcp/rawjson mcp/device mcp/light mcp/iot audio", "a session whatever carries it; never a vendor"},
	{"connection/request", "connection connection/identity internal/lockout internal/text/message mcp/rawjson", "what an HTTP request of a device says"},
	{"connection/websocket", "connection connection/identity connection/request", "upgrade, frames and liveness"},
	{"connection/provision", "connection connection/identity connection/request internal/lockout internal/text/message mcp/rawjson", "what a device asks first"},
	{"connection/pairing", "connection/identity connection/request internal/text/message", "what a person does with devices"},
	{"connection/camera", "connection connection/request internal/lockout internal/text/message mcp/rawjson", "uploads"},

	{"internal/directory", "agent/feature/remote mcp mcp/router", "the devices that talk now"},
	{"internal/models", "", "files that are fetched: it knows no engine"},
	{"internal/fleet", "agent/turn connection/identity internal/contact internal/text/message", "what devices do now: it changes nothing"},
	{"internal/certificate", "internal/private internal/text/message", "what browsers are shown by HTTPS: it knows no server"},
	{"internal/letters", "agent/feature/mail internal/text store", "what devices are to be told in the store"},
	{"internal/recording", "audio audio/file store", "the sound of turns on the disk"},
	{"internal/config", ". connection/identity providers/catalog providers/service internal/private internal/text/message internal/timezone mcp mcp/rawjson mcp/external mcp/local mcp/local/web providers", "settings: what can be set, and nothing started"},
	{"internal/account", "store internal/lru internal/text/message", "who may do what: people, and programs that act for them"},
	{"internal/access", "internal/account internal/lockout internal/lru store internal/text/message", "the one place that decides who may ask what by HTTP"},
	{"internal/contact", "internal/text internal/text/message", "how devices come into contact: it knows no transport and no conversation"},
	{"internal/contact/watch", "internal/contact agent agent/turn audio connection connection/... mcp/device", "what the parts of the server report, joined with the contacts of devices"},
	{"internal/doctor", "internal/access internal/account internal/contact internal/text/message", "what is wrong with a server, and what to do"},
	{"internal/probe", "providers audio internal/text", "tries services as a user would"},
	{"internal/engines", "internal/config internal/text internal/text/message prompts providers providers/...", "the only place that knows providers by name"},
	{"internal/lab", "agent/history agent/think audio audio/file internal/access internal/account internal/config internal/probe internal/text internal/text/message internal/text/sentence internal/timeline prompts providers providers/chain providers/transport store", "what is tried beside the talks, whatever the services are"},
	{"internal/settings", "internal/access internal/account internal/config internal/text/message store", "settings that change while the server runs, whatever is built of them"},
	{"internal/services", "audio audio/file internal/account internal/config internal/engines internal/probe internal/settings internal/text internal/text/message providers providers/catalog providers/chain providers/service providers/transport store", "what people do with services: lists them, tries drafts and makes changes of them"},
	{"internal/roster", "internal/account internal/access internal/text/message", "the agents that people make, whatever is made of them"},
	{"internal/roster/recordstest", "internal/roster", "the contract of what keeps agents"},
	{"docs", "", "what of the documents is given to programs"},
	{"console/api", "agent/feature agent/feature/mail agent/feature/remote docs internal/access internal/account internal/directory internal/fleet internal/text/message", "routes for programs: it builds nothing"},
	{"console/conversations", "console/live console/talks console/ui console/waterfall internal/account internal/access store", "what was said, as a page"},
	{"console/agents", "console/live console/ui internal/account internal/access internal/lab internal/roster internal/text prompts", "agents as pages: what they are made of comes by interfaces"},
	{"console/trials", "console/agents console/live console/ui internal/account internal/access internal/lab internal/lru internal/text store", "trials as pages: who tries comes by interfaces; choices are those of the editor of agents"},
	{"console/talks", "internal/account internal/access internal/text/... internal/lru audio audio/file store", "what people do with what was said"},
	{"console/waterfall", "internal/text/... store", "a picture of a kept turn: pure"},
	{"console/talk", "connection/identity console/ui console/live console/waterfall internal/account internal/access store internal/text/message", "browsers that talk: it opens no socket itself"},
	{"console/ui", "internal/access internal/account internal/text/message", "the frame of all pages, which knows none of them"},
	{"console/live", "internal/access internal/account", "tells open pages what has changed, whatever they show"},
	{"console/doctor", "console/ui console/live internal/access internal/account internal/contact internal/doctor", "the page of what is wrong: it looks at nothing itself"},
	{"console/tools", "console/ui console/live internal/access internal/account internal/config internal/directory internal/fleet internal/settings internal/text/... mcp mcp/external mcp/router mcp/schema providers store", "pages of tools: calls go through the routers of the program"},
	{"console/settings", "console/ui console/live internal/access internal/account internal/config internal/settings internal/text store", "the page of the settings: what is changed it leaves to them"},
	{"console/devices", "agent/feature/mail agent/feature/remote console/ui console/live internal/directory internal/fleet internal/access internal/account internal/text", "pages of devices: what is done to them comes by interfaces"},
	{"console/services", "console/ui console/live internal/access internal/account internal/services internal/settings internal/text providers/service", "the page of services: it asks and makes none itself"},
	{"console/*", "console/ui console/live internal/access internal/account store internal/text/...", "one page: what it shows comes by interfaces of its own"},
	{"console", "console/... internal/access internal/account internal/settings internal/text/...", "all pages as one"},
	{"internal/uptime", "", "a clock that nobody sets"},
	{"internal/app", "...", "builds, starts and stops the program"},
	{"cmd", "...", "flags and exit codes"},

	{"internal/devicetest", "audio", "the other side of the wire shares nothing but the codec"},
	{"internal/openaitest", "", "a fake cloud"},
	{"internal/servicetest", "audio audio/file internal/servicetest internal/servicetest/openairealtime", "a fake is written from a protocol and knows no client"},
	{"internal/speechtest", "audio audio/file", "recordings"},
	{"internal/bench", "audio audio/file internal/devicetest internal/openaitest", "it measures servers from outside, ours like any other"},
	{"internal/wirediff", "internal/admintoken internal/devicetest internal/openaitest internal/speechtest", "it compares two servers from outside"},
	{"internal/conformance", "internal/conformance mcp/...", "programs of others against ours"},
	{"internal/scene", "agent/... mcp/... audio providers/... internal/...", "conversations in fake time"},
	{"internal/browsertest", "", "a browser: it knows no page"},
	{"internal/testall", "", "which tests run"},
	{"internal/postgrestest", "", "a database server for tests"},
	{"internal/archtest", "", "it reads sources"},
	{"e2e", "...", "the built program"},
}

// testOnly packages may be imported by tests of any package.
const testOnly = "audio audio/echo mcp connection/camera connection/provision mcp/light mcp/rawjson providers/providertest providers/sherpa/sherpatest connection/identity/recordstest internal/roster/recordstest agent/feature/alarm/storetest internal/devicetest internal/speechtest internal/testall internal/postgrestest internal/openaitest internal/servicetest/... internal/scene mcp/sourcetest mcp/local mcp/router mcp/schema mcp/device mcp/iot"

// libraries say which packages may import a library, by folder.
var libraries = []rule{
	{"rsc.io/qr", "console/ui", "pictures of addresses are drawn in one place"},
	{"github.com/hraban/opus", "audio", "cgo stays behind one file"},
	{"github.com/gorilla/websocket", "connection/websocket mcp/external mcp/gateway internal/devicetest internal/wirediff internal/servicetest internal/bench providers/transport cmd/xiaozhi-sim e2e", "sockets stay in their rooms"},
	{"github.com/modelcontextprotocol/go-sdk", "mcp internal/conformance", "the protocol stays behind the model of a tool"},
	{"github.com/chromedp/chromedp", "internal/browsertest", "a browser is driven in one place"},
	{"github.com/knadh/koanf", "internal/config", "one place reads settings"},
	{"database/sql", "store", "SQL stands in one place"},
	{"github.com/mattn/go-sqlite3", "store", "databases are known in one place"},
	{"github.com/jackc/pgx", "store internal/postgrestest", "databases are known in one place"},
	{"github.com/pressly/goose", "store", "databases are known in one place"},
	{"golang.org/x/crypto", "internal/account internal/sealed internal/doctor", "passwords are hashed in one place, secrets sealed in one, certificates judged by public authorities in one"},
	{"github.com/teambition/rrule-go", "agent/feature/alarm", "one place computes when something recurs"},
	{"github.com/ebitengine/purego", "providers/pocketsphinx providers/local providers/sherpa", "engines are opened where they are used"},
}
