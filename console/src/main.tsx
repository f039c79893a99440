import '../../src/http/pages/theme.css'
import './styles/controls.css'
import './styles/layout.css'
import './styles/views.css'
import { render } from 'preact'
import { root } from './settings.ts'
import { watchFeed } from './state/feed.ts'
import { resumeSession } from './state/session.ts'
import { Shell } from './views/shell.tsx'

render(<Shell />, root)
resumeSession()
watchFeed()
