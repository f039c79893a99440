import '../../src/http/pages/theme.css'
import '../../src/http/pages/controls.css'
import './styles/controls.css'
import './styles/layout.css'
import './styles/views.css'
import './styles/administration.css'
import { render } from 'preact'
import { accountSlot, root } from './settings.ts'
import { watchFeed } from './state/feed.ts'
import { resumeSession } from './state/session.ts'
import { Shell, Status } from './views/shell.tsx'

render(<Status />, accountSlot)
render(<Shell />, root)
resumeSession()
watchFeed()
